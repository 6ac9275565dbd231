import type { KeyObject } from 'node:crypto'
import type { LedgerRule, Uuid } from '@workspace-wallet/contract'
import { auditRowsPerFetch, emptyAuditMac } from '../../audit/chain.ts'
import type { Snapshot } from '../../database/snapshot.ts'
import { apiKeyColumns, apiKeyMac } from '../../database/tables/api-key.ts'
import { type AuditRow, auditMac, storedAuditColumns } from '../../database/tables/audit.ts'
import { bytes } from '../../database/tables/columns.ts'
import { holdColumns, holdMac } from '../../database/tables/hold.ts'
import { ledgerColumns, ledgerMac } from '../../database/tables/ledger.ts'
import { memberColumns, memberMac } from '../../database/tables/member.ts'
import { operatorColumns, operatorMac } from '../../database/tables/operator.ts'
import { limitColumns, limitMac } from '../../database/tables/spending-limit.ts'
import {
  arrayReader,
  type Columns,
  type RowOf,
  type SignedTable,
  selectColumns,
  type WithMac,
  withMac,
} from '../../database/tables/table.ts'
import { webhookColumns, webhookMac } from '../../database/tables/webhook.ts'
import { workspaceColumns, workspaceMac } from '../../database/tables/workspace.ts'
import { rowIds, workspaceIds } from './checks.ts'
import { type Findings, publicId } from './findings/findings.ts'
import { wholeOf } from './values.ts'

/** What to verify, and where to add the findings. */
type Scope = { snapshot: Snapshot; chainKey: KeyObject; workspaceId: Uuid<'workspace'> | null; findings: Findings }

/** A table whose rows have a MAC. */
type CheckedTable<Of extends Columns> = {
  rule: LedgerRule
  columns: Of
  macOf: (key: KeyObject, row: RowOf<Of>) => Buffer
  /** The names of the columns of the primary key. */
  order: string
  ids: (row: RowOf<Of>) => Record<string, string>
}

const workspaces: CheckedTable<typeof workspaceColumns> = {
  rule: 'workspace-mac',
  columns: workspaceColumns,
  macOf: workspaceMac,
  order: 'id',
  ids: ({ id }) => ({ workspaceId: publicId('workspace', id) }),
}

const ledgers: CheckedTable<typeof ledgerColumns> = {
  rule: 'ledger-mac',
  columns: ledgerColumns,
  macOf: ledgerMac,
  order: 'workspace_id',
  ids: ({ workspaceId }) => ({ workspaceId: publicId('workspace', workspaceId) }),
}

const holds: CheckedTable<typeof holdColumns> = {
  rule: 'hold-mac',
  columns: holdColumns,
  macOf: holdMac,
  order: 'workspace_id, id',
  ids: row => rowIds('hold', row.workspaceId, row.id),
}

const limits: CheckedTable<typeof limitColumns> = {
  rule: 'limit-mac',
  columns: limitColumns,
  macOf: limitMac,
  order: 'workspace_id, subject, currency',
  ids: ({ workspaceId, subject, currency }) => ({
    ...workspaceIds(workspaceId),
    limit: `${subject}`,
    currency: `${currency}`,
  }),
}

const members: CheckedTable<typeof memberColumns> = {
  rule: 'member-mac',
  columns: memberColumns,
  macOf: memberMac,
  order: 'workspace_id, user_id',
  ids: ({ workspaceId, userId }) => ({ ...workspaceIds(workspaceId), userId: `${userId}` }),
}

const apiKeys: CheckedTable<typeof apiKeyColumns> = {
  rule: 'key-mac',
  columns: apiKeyColumns,
  macOf: apiKeyMac,
  order: 'workspace_id, id',
  ids: ({ workspaceId, id }) => ({ ...workspaceIds(workspaceId), apiKey: publicId('apiKey', id) }),
}

/** Operators belong to no workspace. */
const operators: CheckedTable<typeof operatorColumns> = {
  rule: 'operator-mac',
  columns: operatorColumns,
  macOf: operatorMac,
  order: 'name',
  ids: ({ name }) => ({ operator: `${name}` }),
}

const webhooks: CheckedTable<typeof webhookColumns> = {
  rule: 'webhook-mac',
  columns: webhookColumns,
  macOf: webhookMac,
  order: 'workspace_id, id',
  ids: row => rowIds('webhook', row.workspaceId, row.id),
}

/** Checks the MAC of each row that controls money, access or deliveries. Wallets are checked while their flows are replayed. */
export async function checkSignedRows(scope: Scope): Promise<void> {
  await checkRows(scope, 'workspace', workspaces)
  await checkRows(scope, 'ledger', ledgers)
  await checkRows(scope, 'hold', holds)
  await checkRows(scope, 'spending_limit', limits)
  await checkRows(scope, 'member', members)
  await checkRows(scope, 'api_key', apiKeys)
  await checkRows(scope, 'operator', operators)
  await checkRows(scope, 'webhook', webhooks)
}

async function checkRows<Of extends Columns>(
  { snapshot, chainKey, workspaceId, findings }: Scope,
  table: SignedTable,
  { rule, columns, macOf, order, ids }: CheckedTable<Of>,
): Promise<void> {
  const stored = withMac(columns)
  const read = arrayReader(columns, Object.keys(stored))
  const workspaceColumn = { workspace: 'id', operator: 'null' }[table as string] ?? 'workspace_id'
  const sql = `
    select ${selectColumns(stored, 't')}
    from public.${table} t where $1::uuid is null or ${workspaceColumn} = $1 order by ${order}`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    for (const found of rows) {
      const row = read(found)
      if (macOf(chainKey, row).equals(bytes.parse(found.at(-1)))) continue
      findings.add({ rule, message: 'its MAC does not match its row', ids: ids(row) })
    }
}

const readAuditRow = arrayReader(storedAuditColumns, ['id', ...Object.keys(storedAuditColumns)])
const auditSql = `
  select a.id, ${selectColumns(storedAuditColumns, 'a')}
  from public.audit a where $1::uuid is null or a.workspace_id = $1
  order by a.workspace_id, a.position, a.id`

/** Replays the audit of each workspace, and, without a workspaceId, the audit of actions on no workspace. */
export async function checkAudit({ snapshot, chainKey, workspaceId, findings }: Scope): Promise<void> {
  let chain: AuditChain | null = null
  for await (const rows of snapshot.batches(auditSql, [workspaceId], auditRowsPerFetch))
    for (const found of rows) {
      const row = readAuditRow(found)
      if (chain?.workspaceId !== row.workspaceId) chain = new AuditChain(chainKey, findings, row.workspaceId)
      chain!.action(wholeOf(found[0]!), row)
    }
}

/** Replays the actions of one audit. Like the replay of a wallet, it continues from the stored values. */
class AuditChain {
  readonly workspaceId: Uuid<'workspace'> | null
  readonly #key: KeyObject
  readonly #findings: Findings
  #position = 0
  #id = 0
  #mac: Buffer = emptyAuditMac

  constructor(key: KeyObject, findings: Findings, workspaceId: Uuid<'workspace'> | null) {
    this.workspaceId = workspaceId
    this.#key = key
    this.#findings = findings
  }

  action(id: number, { mac, ...action }: WithMac<AuditRow>): void {
    const { position } = action
    const report = (rule: LedgerRule, message: string) =>
      this.#findings.add({
        rule,
        message,
        ids: { ...this.#workspaceIds, audit: id, action: `${action.action}` },
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
