import { type AuditAction, Decimal, type LedgerRule } from '@workspace-wallet/contract'
import type { TextRow } from '../../database/snapshot.ts'
import { apiKeyColumns } from '../../database/tables/api-key.ts'
import type { AuditRow } from '../../database/tables/audit.ts'
import { operatorColumns } from '../../database/tables/operator.ts'
import { limitColumns } from '../../database/tables/spending-limit.ts'
import { arrayReader, type Columns, type SignedTable, selectColumns } from '../../database/tables/table.ts'
import { walletColumns } from '../../database/tables/wallet.ts'
import { webhookColumns } from '../../database/tables/webhook.ts'
import { statusAfter } from '../../wallets/audited-status.ts'
import { type Extent, eventsOf, fundingActions, fundingOf } from './extent.ts'
import { publicId } from './findings/findings.ts'
import { genuineActions, type KeyedAction } from './genuine-actions.ts'
import { Lookahead, sortKey } from './lookahead.ts'
import type { Scope } from './scope.ts'
import { decimalOf } from './values.ts'

/** Fields that an action in the audit determines, by name, as JSON values. */
type State = Record<string, unknown>

type Action = { action: AuditAction; target: string; after: State }

/** A kind of row that only audited actions create and change. */
type AuditedRows = {
  rule: LedgerRule
  actions: readonly AuditAction[]
  /** SQL: the public ID of the row that an action in `{here}.audit` is about. */
  idInAudit: string
  /** Workspace, ID and the columns that `stored` reads, in the order of workspace and ID. */
  sql: string
  /** The public ID of a stored row; it sorts like the stored one. */
  publicId: (stored: string | null) => string
  idName: 'apiKey' | 'limit' | 'operator' | 'transferId' | 'userId' | 'walletId' | 'webhookId' | null
  /** The state after an action, from the state that the earlier actions resulted in. */
  audited: (action: Action, before: State | null) => State
  stored: (columns: TextRow) => State
}

const isInScope = '($1::uuid is null or workspace_id = $1)'

// Not by the operators of JSON: they fail for an entry that has U+0000 or half of a surrogate pair anywhere. A quotation mark within a
// text is escaped, so these match fields only.
const transferIdInAudit = `substring(after::text from '"transferId":"(trf_[0-9a-z]+)"')`
const currencyInAudit = `substring(after::text from '"currency":"([A-Z]+)"')`

type RowsWithColumns<Of extends Columns> = Pick<AuditedRows, 'rule' | 'actions' | 'publicId' | 'idName'> &
  Partial<Pick<AuditedRows, 'idInAudit' | 'audited'>> & {
    table: SignedTable
    columns: Of
    /** SQL about the rows `t`, if it is not that of a table whose primary key is `workspace_id, id`. */
    workspace?: string
    id?: string
    where?: string
    order?: string
  }

/** A kind of row with columns that have the names and values of the fields in the audit. */
function rowsOf<Of extends Columns>({ table, columns, ...given }: RowsWithColumns<Of>): AuditedRows {
  const { workspace = 't.workspace_id', id = 't.id', where = isInScope, order = 't.workspace_id, t.id' } = given
  const read = arrayReader(columns, Object.keys(columns))
  return {
    idInAudit: 'target',
    audited: ({ after }) => Object.fromEntries(Object.keys(columns).map(name => [name, after[name]])),
    ...given,
    sql: `
      select ${workspace}, ${id}, ${selectColumns(columns, 't')}
      from {here}.${table} t where ${where} order by ${order}`,
    stored: found => Object.fromEntries(Object.entries(read(found)).map(([name, value]) => [name, inAudit(value)])),
  }
}

/** A value as the audit has it, in JSON. What cannot be read as a time equals none in the audit. */
function inAudit(value: unknown): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? String(value) : value.toISOString()
  return Decimal.isDecimal(value) ? value.toFixed() : value
}

function pick<Of extends Columns, Name extends keyof Of>(columns: Of, ...names: Name[]): Pick<Of, Name> {
  return Object.fromEntries(names.map(name => [name, columns[name]])) as Pick<Of, Name>
}

const workspaces: AuditedRows = {
  rule: 'workspace-audit',
  actions: ['workspace.create', 'workspace.delete'],
  idInAudit: 'target',
  sql: `
    select w.id, w.id, w.name, w.deleted_at is null, coalesce(l.status <> 'CLOSED', w.deleted_at is null)
    from {here}.workspace w left join {here}.ledger l on l.workspace_id = w.id
    where $1::uuid is null or w.id = $1 order by w.id`,
  publicId: id => publicId('workspace', id),
  idName: null,
  audited: ({ action, after }, before) =>
    action === 'workspace.create'
      ? { name: after.name, status: 'active', ledger: 'open' }
      : { ...before, status: 'deleted', ledger: 'closed' },
  stored: ([name, isActive, isOpen]) => ({
    name,
    status: isActive === 't' ? 'active' : 'deleted',
    ledger: isOpen === 't' ? 'open' : 'closed',
  }),
}

const members: AuditedRows = {
  rule: 'member-audit',
  actions: ['member.add', 'member.remove'],
  idInAudit: 'target',
  sql: `
    select workspace_id, user_id, removed_at is null
    from {here}.member where ${isInScope} order by workspace_id, user_id`,
  publicId: userId => `${userId}`,
  idName: 'userId',
  audited: ({ action }) => ({ status: action === 'member.add' ? 'member' : 'removed' }),
  stored: ([isMember]) => ({ status: isMember === 't' ? 'member' : 'removed' }),
}

const apiKeys = rowsOf({
  rule: 'key-audit',
  actions: [
    'key.create',
    'key.delete',
    'key.disable',
    'key.enable',
    'key.rotate',
    'key.set-expiry',
    'key.set-ips',
    'key.set-scopes',
  ],
  table: 'api_key',
  columns: pick(apiKeyColumns, 'status', 'scopes', 'ipAllowlist', 'secretVersion', 'expiresAt', 'deletedAt'),
  publicId: id => publicId('apiKey', id),
  idName: 'apiKey',
})

const operators = rowsOf({
  rule: 'operator-audit',
  actions: ['operator.create', 'operator.disable', 'operator.rotate'],
  table: 'operator',
  columns: pick(operatorColumns, 'role', 'status', 'tokenVersion', 'expiresAt'),
  workspace: 'null',
  id: 't.name',
  where: '$1::uuid is null',
  order: 't.name',
  publicId: name => `${name}`,
  idName: 'operator',
})

const wallets = rowsOf({
  rule: 'wallet-audit',
  actions: Object.keys(statusAfter) as (keyof typeof statusAfter)[],
  table: 'wallet',
  columns: pick(walletColumns, 'name', 'bizId', 'currency', 'status', 'frozenBy'),
  where: `kind is distinct from 'EXTERNAL' and ${isInScope}`,
  publicId: id => publicId('wallet', id),
  idName: 'walletId',
  audited: ({ action, after }, before) => {
    const { name, bizId, currency } = action === 'wallet.create' ? after : (before ?? {})
    const { frozenBy } = after
    return { name, bizId, currency, status: statusAfter[action as keyof typeof statusAfter], frozenBy }
  },
})

const funding = (extent: Extent): AuditedRows => ({
  rule: 'transfer-audit',
  actions: ['wallet.deposit', 'wallet.withdraw'],
  idInAudit: transferIdInAudit,
  sql: `
    select workspace_id, id, type, case type when 'DEPOSIT' then target_wallet_id else source_wallet_id end, biz_id,
      amount, currency
    from ${eventsOf('transfer', extent)} t
    where type is distinct from 'TRANSFER' and ${isInScope} order by workspace_id, id`,
  publicId: id => publicId('transfer', id),
  idName: 'transferId',
  audited: ({ action, target, after: { bizId, amount, currency } }) => ({
    type: action === 'wallet.deposit' ? 'DEPOSIT' : 'WITHDRAWAL',
    wallet: target,
    bizId,
    amount,
    currency,
  }),
  stored: ([type, wallet, bizId, amount, currency]) => ({
    type,
    wallet: publicId('wallet', wallet!),
    bizId,
    amount,
    currency,
  }),
})

const webhooks = rowsOf({
  rule: 'webhook-audit',
  actions: [
    'webhook.create',
    'webhook.delete',
    'webhook.pause',
    'webhook.resume',
    'webhook.rotate',
    'webhook.seek',
    'webhook.update',
  ],
  table: 'webhook',
  columns: pick(webhookColumns, 'bizId', 'url', 'types', 'concurrency', 'status', 'secretVersion', 'deletedAt'),
  publicId: id => publicId('webhook', id),
  idName: 'webhookId',
})

const limits = rowsOf({
  rule: 'limit-audit',
  actions: ['limit.set', 'limit.clear'],
  table: 'spending_limit',
  columns: pick(limitColumns, 'perTransfer', 'perDay', 'countedFrom'),
  id: `t.subject || ' ' || t.currency`,
  idInAudit: `target || ' ' || ${currencyInAudit}`,
  order: 't.workspace_id, t.subject, t.currency',
  publicId: limit => {
    const [, kind, id = '', currency] = limit?.match(/^(key|wallet):(.*) (.*)$/s) ?? []
    return kind ? `${kind === 'key' ? id : publicId('wallet', id)} ${currency}` : `${limit}`
  },
  idName: 'limit',
  audited: ({ after: { perTransfer, perDay, countedFrom } }) => ({
    perTransfer: plainAmount(perTransfer),
    perDay: plainAmount(perDay),
    countedFrom,
  }),
})

/**
 * Compares the audit with the rows that its actions created and changed. A row that its owner resets to an earlier
 * state has a genuine MAC; the audit still has the action that followed. Actions that are not genuine count for nothing: a forged one
 * would hide such a reset.
 *
 * Each kind is one merge of two sorted streams, so memory stays constant. An incremental verification compares the new deposits and
 * withdrawals, and everything else as a whole.
 */
export async function checkAuditedRows(scope: Scope): Promise<void> {
  for (const rows of [workspaces, members, apiKeys, operators, wallets, funding(scope.extent), webhooks, limits])
    await compare(rows, scope)
}

async function compare(audited: AuditedRows, scope: Scope): Promise<void> {
  const { snapshot, workspaceId, findings, extent } = scope
  const { actions: names, idInAudit, sql } = audited
  const actions = new Lookahead(
    genuineActions(scope, {
      from:
        audited.rule === 'transfer-audit'
          ? fundingOf(extent)
          : `(select * from {here}.audit where action not in ${fundingActions})`,
      key: idInAudit,
      where: `action = any ($2) and ${isInScope}`,
      values: [names],
    }),
  )
  const rows = new Lookahead(snapshot.batches(sql, [workspaceId]))
  const idOfAction = ({ action, key }: KeyedAction): TextRow => [action.workspaceId, key]
  const keyOfAction = ({ action, key }: KeyedAction) => sortKey(action.workspaceId, key)
  const keyOfRow = ([workspace, id]: TextRow) => sortKey(workspace!, audited.publicId(id!))
  for (;;) {
    let action = await actions.peek()
    const row = await rows.peek()
    const [key] = [...(action ? [keyOfAction(action)] : []), ...(row ? [keyOfRow(row)] : [])].sort()
    if (key === undefined) return
    const subject = action && keyOfAction(action) === key ? idOfAction(action) : row!
    let expected: State | null = null
    for (; action && keyOfAction(action) === key; action = await actions.peek()) {
      expected = audited.audited(toAction(action.action), expected)
      actions.take()
    }
    const isStored = row !== undefined && keyOfRow(row) === key
    if (isStored) rows.take()
    const message = differenceOf(expected, isStored ? audited.stored(row.slice(2)) : null)
    if (message) findings.add({ rule: isStored ? audited.rule : 'audit-target', message, ids: idsOf(audited, subject) })
  }
}

function toAction({ action, target, after }: AuditRow): Action {
  return { action, target, after: JSON.parse(after ?? 'null') ?? {} }
}

function differenceOf(audited: State | null, stored: State | null): string | null {
  if (!audited) return 'no genuine action in the audit created it'
  if (!stored) return 'it is in the audit, and its row does not exist'
  const differences = Object.entries(audited).flatMap(([field, value]) => {
    const [expected, found] = [value, stored[field]].map(each => JSON.stringify(each ?? null))
    return expected === found ? [] : [`its ${field} is ${found}, and ${expected} in the audit`]
  })
  return differences.length > 0 ? differences.join('; ') : null
}

function idsOf({ idName, publicId: toPublicId }: AuditedRows, [workspace, id]: TextRow): Record<string, string> {
  const workspaceIds = workspace === null ? {} : { workspaceId: publicId('workspace', workspace!) }
  return idName ? { ...workspaceIds, [idName]: toPublicId(id!) } : workspaceIds
}

/** An amount without the decimals of its currency, which the audit shows and a limit is stored without. */
function plainAmount(amount: unknown): string | null {
  return typeof amount === 'string' ? decimalOf(amount).toFixed() : null
}
