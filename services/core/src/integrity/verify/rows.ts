import type { KeyObject } from 'node:crypto'
import type { LedgerRule } from '@workspace-wallet/contract'
import { apiKeyColumns, apiKeyMac } from '../../database/tables/api-key.ts'
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
  withMac,
} from '../../database/tables/table.ts'
import { webhookColumns, webhookMac } from '../../database/tables/webhook.ts'
import { workspaceColumns, workspaceMac } from '../../database/tables/workspace.ts'
import { workspaceMoveColumns, workspaceMoveMac } from '../../database/tables/workspace-move.ts'
import { rowIds, workspaceIds } from './checks.ts'
import { ofHolds } from './extent.ts'
import { publicId } from './findings/findings.ts'
import type { Scope } from './scope.ts'

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

const moves: CheckedTable<typeof workspaceMoveColumns> = {
  rule: 'move-mac',
  columns: workspaceMoveColumns,
  macOf: workspaceMoveMac,
  order: 'workspace_id',
  ids: ({ workspaceId }) => workspaceIds(workspaceId),
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
  await checkRows(scope, 'workspace_move', moves)
}

async function checkRows<Of extends Columns>(
  { snapshot, chainKey, workspaceId, findings, extent }: Scope,
  table: SignedTable,
  { rule, columns, macOf, order, ids }: CheckedTable<Of>,
): Promise<void> {
  const stored = withMac(columns)
  const read = arrayReader(columns, Object.keys(stored))
  const workspaceColumn = { workspace: 'id', operator: 'null' }[table as string] ?? 'workspace_id'
  const sql = `
    select ${selectColumns(stored, 't')}
    from ${table === 'hold' ? ofHolds('hold', extent) : `{here}.${table}`} t where $1::uuid is null or ${workspaceColumn} = $1 order by ${order}`
  for await (const rows of snapshot.batches(sql, [workspaceId]))
    for (const found of rows) {
      const row = read(found)
      if (macOf(chainKey, row).equals(bytes.parse(found.at(-1)))) continue
      findings.add({ rule, message: 'its MAC does not match its row', ids: ids(row) })
    }
}
