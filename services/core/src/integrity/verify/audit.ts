import type { KeyObject } from 'node:crypto'
import type { LedgerRule, Uuid } from '@workspace-wallet/contract'
import { auditRowsPerFetch, emptyAuditMac } from '../../audit/chain.ts'
import type { TextRow } from '../../database/snapshot.ts'
import { type AuditRow, auditMac, storedAuditColumns } from '../../database/tables/audit.ts'
import { arrayReader, selectColumns, type WithMac } from '../../database/tables/table.ts'
import { RunningDigest, type VerifiedEnd } from './baseline.ts'
import { workspaceIds } from './checks.ts'
import { type Extent, fundingActions, fundingOf, noWorkspace } from './extent.ts'
import type { Findings } from './findings/findings.ts'
import type { Scope } from './scope.ts'
import { wholeOf } from './values.ts'

const readAuditRow = arrayReader(storedAuditColumns, ['id', ...Object.keys(storedAuditColumns)])

/** An incremental verification reads old actions too, except deposits and withdrawals: administration is not often. */
function auditSql(extent: Extent): string {
  const actions =
    extent === 'WHOLE'
      ? '{here}.audit'
      : `(select * from {here}.audit where action not in ${fundingActions} union all select * from ${fundingOf(extent)} funding)`
  return `
    select a.id, ${selectColumns(storedAuditColumns, 'a')}
    from ${actions} a where $1::uuid is null or a.workspace_id = $1
    order by a.workspace_id, a.position, a.id`
}

/** Replays the audit of each workspace, and, without a workspaceId, the audit of actions on no workspace. */
export async function checkAudit({
  snapshot,
  chainKey,
  workspaceId,
  findings,
  extent,
  baseline,
  audit,
}: Scope): Promise<void> {
  let chain: AuditChain | null = null
  const end = () => {
    if (!chain) return
    const ended = chain.end()
    audit.set(chain.key, ended.now)
    audit.compare(chain.key, ended.verified)
  }
  for await (const rows of snapshot.batches(auditSql(extent), [workspaceId], auditRowsPerFetch))
    for (const found of rows) {
      const row = readAuditRow(found)
      if (!chain || chain.workspaceId !== row.workspaceId) {
        end()
        const verified = baseline.get(row.workspaceId ?? noWorkspace) ?? null
        chain = new AuditChain(chainKey, findings, row.workspaceId, verified)
      }
      chain.action(found, row)
    }
  end()
  audit.end()
}

const funding: readonly string[] = ['wallet.deposit', 'wallet.withdraw']

/** Replays the actions of one audit. Like the replay of a wallet, it continues from the stored values. */
class AuditChain {
  readonly workspaceId: Uuid<'workspace'> | null
  readonly #key: KeyObject
  readonly #findings: Findings
  /** Where the last verification ended, until the replay is there. */
  #verified: VerifiedEnd | null
  readonly #administration = new RunningDigest()
  #verifiedDigest: string
  #position = 0
  #id = 0
  #mac: Buffer = emptyAuditMac

  constructor(key: KeyObject, findings: Findings, workspaceId: Uuid<'workspace'> | null, verified: VerifiedEnd | null) {
    this.#key = key
    this.#findings = findings
    this.workspaceId = workspaceId
    this.#verified = verified
    this.#verifiedDigest = this.#administration.now
  }

  /** In `verified_ledger`. */
  get key(): string {
    return this.workspaceId ?? noWorkspace
  }

  action(found: TextRow, row: WithMac<AuditRow>): void {
    if (this.#verified && !(row.position <= wholeOf(this.#verified.auditPosition))) this.#passVerified(this.#verified)
    // Up to there, the digest of all actions that are read is compared.
    if (!this.#verified) this.#replay(found[0]!, row)
    if (!funding.includes(row.action)) this.#administration.add(found)
  }

  /** The digests of the actions that are no deposits and withdrawals: of all, and of those that the last verification has seen. */
  end(): { now: string; verified: string } {
    if (this.#verified) this.#passVerified(this.#verified)
    return { now: this.#administration.now, verified: this.#verifiedDigest }
  }

  #passVerified({ auditPosition, auditMac }: VerifiedEnd): void {
    this.#verifiedDigest = this.#administration.now
    this.#position = wholeOf(auditPosition)
    this.#mac = Buffer.from(auditMac, 'hex')
    this.#verified = null
  }

  #replay(idText: string, { mac, ...action }: WithMac<AuditRow>): void {
    const id = wholeOf(idText)
    const { position } = action
    const report = (rule: LedgerRule, message: string) =>
      this.#findings.add({
        rule,
        message,
        ids: { ...this.#workspaceIds, audit: Number.isNaN(id) ? idText : id, action: `${action.action}` },
      })
    if (position !== this.#position + 1)
      report('audit-position', `its position is ${position}, expected ${this.#position + 1}`)
    else if (!auditMac(this.#key, action, this.#mac).equals(mac))
      report('audit-chain', 'its MAC does not match its content and the action before it')
    if (!(id > this.#id)) report('audit-position', 'it is listed before the action that it follows')
    this.#position = position
    this.#id = id
    this.#mac = mac
  }

  get #workspaceIds() {
    return this.workspaceId === null ? {} : workspaceIds(this.workspaceId)
  }
}
