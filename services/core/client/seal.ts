import {
  listedViolations,
  type SealFindings,
  type SealPart,
  sealPart,
  type VerifyEvent,
  type VerifyReport,
  type Violation,
} from '../contract/index.ts'
import type { CoreClient } from './index.ts'

type Scope = { workspaceId?: string | undefined }

/** A seal of all chains, or of one workspace's, line by line: the file for an auditor to keep. */
export async function* sealLines(core: CoreClient, scope: Scope = {}, signal?: AbortSignal): AsyncGenerator<string> {
  for await (const part of await core.ledger.seal.query(scope, { ...(signal && { signal }) }))
    yield `${JSON.stringify(part)}\n`
}

/** Progress also says how many wallets of the seal were compared. */
export type SealedVerifyEvent = VerifyEvent | { kind: 'sealed'; wallets: number }

/**
 * Verifies the ledger, and that it still is what a seal says it was. The chains replay, so a flow that bears the
 * sealed MAC stands at the end of the history that was sealed; so the scope should be the seal's own, or wider.
 *
 * The seal goes to core part by part, before the verification: a million wallets fit in no request, and no core keeps
 * a half-read file between requests.
 *
 * @param lines the lines of the seal's file, or any pieces of it
 */
export async function* verifyWithSeal(
  core: CoreClient,
  lines: AsyncIterable<string> | Iterable<string>,
  scope: Scope = {},
  signal?: AbortSignal,
): AsyncGenerator<SealedVerifyEvent> {
  const options = { ...(signal && { signal }) }
  const seal: SealFindings = { sealId: null, sealedAt: null, wallets: 0, fault: null }
  const changes: Violation[] = []
  let changed = 0
  for await (const part of readSeal(lines)) {
    if ('fault' in part) {
      seal.fault = part.fault
      break
    }
    const { genuine, violations } = await core.ledger.checkSeal.query(part, options)
    if (!genuine) {
      seal.fault = `part ${part.part} was changed, or was not signed under this ledger's chain key`
      break
    }
    seal.sealId = part.sealId
    seal.sealedAt = part.sealedAt
    seal.wallets += part.chains.length
    changed += violations.length
    changes.push(...violations.slice(0, listedViolations - changes.length))
    yield { kind: 'sealed', wallets: seal.wallets }
  }
  for await (const event of await core.ledger.verify.query(scope, options))
    yield event.kind === 'result' ? { kind: 'result', report: withSeal(event.report, seal, changes, changed) } : event
}

function withSeal(report: VerifyReport, seal: SealFindings, changes: Violation[], changed: number): VerifyReport {
  const violations = [...changes, ...report.violations].slice(0, listedViolations)
  const more = changed + report.violations.length + report.more - violations.length
  return { ...report, ok: report.ok && changed === 0 && seal.fault === null, violations, more, seal }
}

/** The parts of a seal in order, or the first thing that is wrong with the file. */
async function* readSeal(
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<SealPart | { fault: string }> {
  let before: SealPart | undefined
  for await (const line of wholeLines(lines)) {
    const part = partAfter(before, line)
    yield part
    if ('fault' in part) return
    before = part
  }
  if (!before?.last) yield { fault: 'it is cut off: its last part is missing' }
}

function partAfter(before: SealPart | undefined, line: string): SealPart | { fault: string } {
  const number = before ? before.part + 1 : 0
  const part = parsePart(line)
  if (!part) return { fault: `line ${number + 1} is not a part of a seal` }
  if (before?.last) return { fault: 'something follows its last part' }
  if (before && part.sealId !== before.sealId) return { fault: `line ${number + 1} belongs to another seal` }
  if (part.part !== number) return { fault: `part ${number} is missing before part ${part.part}` }
  return part
}

function parsePart(line: string): SealPart | null {
  try {
    return sealPart.parse(JSON.parse(line))
  } catch {
    return null
  }
}

async function* wholeLines(pieces: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()!
    yield* lines.filter(line => line.trim() !== '')
  }
  if (rest.trim() !== '') yield rest
}
