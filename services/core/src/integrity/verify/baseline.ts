import { createHash, type Hash } from 'node:crypto'
import type { Uuid } from '@workspace-wallet/contract'
import type { Snapshot, TextRow } from '../../database/snapshot.ts'
import { noWorkspace } from './extent.ts'
import { type Findings, publicId } from './findings/findings.ts'

/** A row of `verified_ledger`: where a sound verification ended, as text. MACs and digests in hex. */
export type VerifiedEnd = Record<(typeof names)[number], string> & { postedAt: string | null }

const names = [
  'workspaceId',
  'position',
  'orderCount',
  'postedAt',
  'journalHead',
  'auditPosition',
  'auditMac',
  'wallets',
  'audit',
] as const

/** SHA-256 in hex over all rows, in the order of their keys. The audit has it, under a MAC. */
export class BaselineDigest {
  readonly #hash = createHash('sha256')

  add(ledger: VerifiedEnd): void {
    this.#hash.update(`${JSON.stringify(names.map(name => ledger[name]))}\n`)
  }

  end(): string {
    return this.#hash.digest('hex')
  }
}

/** The rows of `verified_ledger` are not those that the last sound verification has written. */
export class BaselineChanged extends Error {
  constructor() {
    super('where the last verification ended was changed in the database: only a whole verification can follow')
  }
}

/** Where the last sound verification ended, by the ID of the workspace. Its memory grows with the number of workspaces. */
export type Baseline = ReadonlyMap<string, VerifiedEnd>

/** @throws BaselineChanged if the rows do not have this digest */
export async function readBaseline(snapshot: Snapshot, digest: string): Promise<Baseline> {
  // First without keeping them: whoever has the role of the service can add any number of rows.
  const found = new BaselineDigest()
  for await (const ledger of storedEnds(snapshot)) found.add(ledger)
  if (found.end() !== digest) throw new BaselineChanged()
  const baseline = new Map<string, VerifiedEnd>()
  for await (const ledger of storedEnds(snapshot)) baseline.set(ledger.workspaceId, ledger)
  return baseline
}

async function* storedEnds(snapshot: Snapshot): AsyncGenerator<VerifiedEnd> {
  const sql = `
    select workspace_id, position, order_count, posted_at, encode(journal_head, 'hex'), audit_position,
      encode(audit_mac, 'hex'), encode(wallets, 'hex'), encode(audit, 'hex')
    from {here}.verified_ledger order by workspace_id`
  for await (const rows of snapshot.batches(sql)) for (const row of rows) yield toLedger(row)
}

function toLedger(row: TextRow): VerifiedEnd {
  return Object.fromEntries(names.map((name, at) => [name, row[at]])) as VerifiedEnd
}

/** The ends of the chains of the wallets of one workspace, or its actions in the audit, as one digest. */
export class RunningDigest {
  #hash: Hash = createHash('sha256')

  add(values: readonly (string | number | null)[]): void {
    this.#hash.update(`${JSON.stringify(values)}\n`)
  }

  /** In hex, of what was added so far. */
  get now(): string {
    return this.#hash.copy().digest('hex')
  }
}

const emptyDigest = new RunningDigest().now

/**
 * Collects the digests of a verification, for the next one, and compares those that it computes for the end of the last one. What a
 * verification has not seen of a workspace is as if it had none.
 */
export class Digests {
  readonly #kind: 'wallets' | 'audit'
  readonly #baseline: Baseline
  readonly #findings: Findings
  readonly #now = new Map<string, string>()
  readonly #compared = new Set<string>()

  constructor(kind: 'wallets' | 'audit', baseline: Baseline, findings: Findings) {
    this.#kind = kind
    this.#baseline = baseline
    this.#findings = findings
  }

  of(workspaceId: string): string {
    return this.#now.get(workspaceId) ?? emptyDigest
  }

  /**
   * After any violation, no verification continues this one: nothing is kept. So a row that somebody else has inserted, which is a
   * violation itself, takes no memory, however many there are.
   */
  set(workspaceId: string, digest: string): void {
    if (this.#findings.ok) this.#now.set(workspaceId, digest)
    else this.#now.clear()
  }

  /** Compares what the workspace had where the last verification ended. */
  compare(workspaceId: string, digest: string): void {
    const verified = this.#baseline.get(workspaceId)
    if (!verified) return
    this.#compared.add(workspaceId)
    if (verified[this.#kind] === digest) return
    const ids = workspaceId === noWorkspace ? {} : { workspaceId: publicId('workspace', workspaceId) }
    if (this.#kind === 'wallets')
      this.#findings.add({
        rule: 'verified-wallets',
        message: `its wallets up to position ${verified.position} are not those of the last verification`,
        ids,
      })
    else
      this.#findings.add({
        rule: 'verified-audit',
        message: `its audit up to action ${verified.auditPosition} is not that of the last verification`,
        ids,
      })
  }

  /** Compares the workspaces of which nothing was seen. */
  end(): void {
    for (const workspaceId of this.#baseline.keys())
      if (!this.#compared.has(workspaceId)) this.compare(workspaceId, emptyDigest)
  }
}

/** Where this verification ends: what the next one can begin with. */
export async function* endsOf({
  snapshot,
  wallets,
  audit,
}: {
  snapshot: Snapshot
  wallets: Digests
  audit: Digests
}): AsyncGenerator<VerifiedEnd[]> {
  const sql = `
    select coalesce(l.workspace_id, h.workspace_id), coalesce(l.position, 0), coalesce(l.order_count, 0), l.last_posted_at,
      coalesce(encode(l.journal_head, 'hex'), ''), coalesce(h.position, 0), coalesce(encode(h.mac, 'hex'), '')
    from {here}.ledger l full join {here}.audit_head h on h.workspace_id = l.workspace_id
    order by 1`
  for await (const rows of snapshot.batches(sql))
    yield rows.map(row => {
      const workspaceId = row[0] as Uuid<'workspace'>
      return toLedger([...row, wallets.of(workspaceId), audit.of(workspaceId)])
    })
}
