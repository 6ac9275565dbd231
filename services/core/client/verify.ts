import { TRPCClientError } from '@trpc/client'
import { listedViolations, type SealFindings, type VerifyReport, type Violation } from '../contract/index.ts'
import type { CoreClient } from './core-client.ts'
import { CoreUnreachable } from './link.ts'
import { readSeal } from './seal.ts'

export type VerifyProgress =
  | { kind: 'flows'; flows: number; totalFlows: number }
  /** Wallets of the seal that were compared. */
  | { kind: 'seal'; wallets: number }

export type VerifyOptions = {
  /** Of this workspace alone. */
  workspaceId?: string | undefined
  /** The lines of a seal's file, or any pieces of it: the ledger must continue what was sealed. */
  seal?: AsyncIterable<string> | Iterable<string> | undefined
  onProgress?: ((progress: VerifyProgress) => void) | undefined
  signal?: AbortSignal | undefined
}

/**
 * Verifies the ledger, and that it still is what a seal says it was. The chains replay, so a flow that bears the
 * sealed MAC stands at the end of the history that was sealed.
 *
 * The seal goes to core part by part, before the verification: a million wallets fit in no request, and no core keeps
 * a half-read file between requests.
 *
 * @throws TRPCClientError core's refusal; its cause is a CoreUnreachable when the answer ended before its result
 */
export async function verifyLedger(
  core: CoreClient,
  { workspaceId, seal, onProgress, signal }: VerifyOptions = {},
): Promise<VerifyReport> {
  const options = { ...(signal && { signal }) }
  const compared = seal && (await compareSeal(core, seal, workspaceId, onProgress, options))
  for await (const event of await core.ledger.verify.query({ workspaceId }, options)) {
    if (event.kind === 'result') return compared ? withSeal(event.report, compared) : event.report
    onProgress?.({ kind: 'flows', flows: event.flows, totalFlows: event.totalFlows })
  }
  throw TRPCClientError.from(new CoreUnreachable(true))
}

/**
 * Verifies a halted workspace, and opens it again when it is sound, or when that is forced.
 *
 * @throws TRPCClientError core's refusal, of a workspace that is not halted for one; its cause is a CoreUnreachable
 *   when the answer ended before its result
 */
export async function reopenLedger(
  core: CoreClient,
  input: { workspaceId: string; force: boolean },
  onProgress?: (progress: VerifyProgress) => void,
): Promise<{ reopened: boolean; report: VerifyReport }> {
  for await (const event of await core.ledger.reopen.mutate(input)) {
    if (event.kind === 'result') return { reopened: event.reopened, report: event.report }
    onProgress?.({ kind: 'flows', flows: event.flows, totalFlows: event.totalFlows })
  }
  throw TRPCClientError.from(new CoreUnreachable(true))
}

type Compared = { findings: SealFindings; violations: Violation[]; more: number }

async function compareSeal(
  core: CoreClient,
  lines: AsyncIterable<string> | Iterable<string>,
  workspaceId: string | undefined,
  onProgress: VerifyOptions['onProgress'],
  options: { signal?: AbortSignal },
): Promise<Compared> {
  const findings: SealFindings = { sealId: null, sealedAt: null, workspaceId: null, wallets: 0, fault: null }
  const compared: Compared = { findings, violations: [], more: 0 }
  for await (const part of readSeal(lines)) {
    if ('fault' in part) {
      findings.fault = part.fault
      break
    }
    const { genuine, violations } = await core.ledger.checkSeal.query(part, options)
    if (!genuine) {
      findings.fault = `part ${part.part} was changed, or was not signed under this ledger's chain key`
      break
    }
    if (workspaceId !== undefined && part.workspaceId !== workspaceId) {
      // Heads outside of what is replayed would be compared, and prove nothing.
      findings.fault = `it is of ${part.workspaceId ?? 'all workspaces'}, and ${workspaceId} alone was verified`
      break
    }
    findings.sealId = part.sealId
    findings.sealedAt = part.sealedAt
    findings.workspaceId = part.workspaceId
    findings.wallets += part.chains.length
    const listed = violations.slice(0, listedViolations - compared.violations.length)
    compared.violations.push(...listed)
    compared.more += violations.length - listed.length
    onProgress?.({ kind: 'seal', wallets: findings.wallets })
  }
  return compared
}

function withSeal(report: VerifyReport, { findings, violations: changes, more: moreChanges }: Compared): VerifyReport {
  const violations = [...changes, ...report.violations].slice(0, listedViolations)
  const found = changes.length + moreChanges + report.violations.length + report.more
  return {
    ...report,
    ok: report.ok && changes.length === 0 && findings.fault === null,
    violations,
    more: found - violations.length,
    seal: findings,
  }
}
