import type { AuditAction, LedgerRule, Uuid } from '@workspace-wallet/contract'
import type { Snapshot, TextRow } from '../../database/snapshot.ts'
import { statusAfter } from '../../wallets/audited-status.ts'
import { type Findings, publicId } from './findings/findings.ts'
import { Lookahead, sortKey } from './lookahead.ts'
import { dateOf, decimalOf, wholeOf } from './values.ts'

type Scope = { snapshot: Snapshot; workspaceId: Uuid<'workspace'> | null; findings: Findings }

/** Fields that an action in the audit determines, by name, as JSON values. */
type State = Record<string, unknown>

type Action = { action: AuditAction; target: string; after: State }

/** A kind of row that only audited actions create and change. */
type AuditedRows = {
  rule: LedgerRule
  actions: readonly AuditAction[]
  /** SQL: the public ID of the row that an action in `public.audit` is about. */
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

const workspaces: AuditedRows = {
  rule: 'workspace-audit',
  actions: ['workspace.create', 'workspace.delete'],
  idInAudit: 'target',
  sql: `
    select w.id, w.id, w.name, w.deleted_at is null, coalesce(l.status <> 'CLOSED', w.deleted_at is null)
    from public.workspace w left join public.ledger l on l.workspace_id = w.id
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
    from public.member where ${isInScope} order by workspace_id, user_id`,
  publicId: userId => `${userId}`,
  idName: 'userId',
  audited: ({ action }) => ({ status: action === 'member.add' ? 'member' : 'removed' }),
  stored: ([isMember]) => ({ status: isMember === 't' ? 'member' : 'removed' }),
}

const apiKeys: AuditedRows = {
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
  idInAudit: 'target',
  sql: `
    select workspace_id, id, status, to_json(scopes), to_json(ip_allowlist), secret_version, expires_at, deleted_at
    from public.api_key where ${isInScope} order by workspace_id, id`,
  publicId: id => publicId('apiKey', id),
  idName: 'apiKey',
  audited: ({ after: { status, scopes, ipAllowlist, secretVersion, expiresAt, deletedAt } }) => ({
    status,
    scopes,
    ipAllowlist,
    secretVersion,
    expiresAt,
    deletedAt,
  }),
  stored: ([status, scopes, ipAllowlist, secretVersion, expiresAt, deletedAt]) => ({
    status,
    scopes: JSON.parse(scopes ?? 'null'),
    ipAllowlist: JSON.parse(ipAllowlist ?? 'null'),
    secretVersion: wholeOf(secretVersion!),
    expiresAt: isoTime(expiresAt!),
    deletedAt: isoTime(deletedAt!),
  }),
}

const operators: AuditedRows = {
  rule: 'operator-audit',
  actions: ['operator.create', 'operator.disable', 'operator.rotate'],
  idInAudit: 'target',
  sql: `
    select null, name, role, status, token_version, expires_at
    from public.operator where $1::uuid is null order by name`,
  publicId: name => `${name}`,
  idName: 'operator',
  audited: ({ after: { role, status, tokenVersion, expiresAt } }) => ({ role, status, tokenVersion, expiresAt }),
  stored: ([role, status, tokenVersion, expiresAt]) => ({
    role,
    status,
    tokenVersion: wholeOf(tokenVersion!),
    expiresAt: isoTime(expiresAt!),
  }),
}

const wallets: AuditedRows = {
  rule: 'wallet-audit',
  actions: Object.keys(statusAfter) as (keyof typeof statusAfter)[],
  idInAudit: 'target',
  sql: `
    select workspace_id, id, name, biz_id, currency, status, frozen_by
    from public.wallet where kind is distinct from 'EXTERNAL' and ${isInScope} order by workspace_id, id`,
  publicId: id => publicId('wallet', id),
  idName: 'walletId',
  audited: ({ action, after }, before) => {
    const { name, bizId, currency } = action === 'wallet.create' ? after : (before ?? {})
    const { frozenBy } = after
    return { name, bizId, currency, status: statusAfter[action as keyof typeof statusAfter], frozenBy }
  },
  stored: ([name, bizId, currency, status, frozenBy]) => ({ name, bizId, currency, status, frozenBy }),
}

const funding: AuditedRows = {
  rule: 'transfer-audit',
  actions: ['wallet.deposit', 'wallet.withdraw'],
  idInAudit: "after ->> 'transferId'",
  sql: `
    select workspace_id, id, type, case type when 'DEPOSIT' then target_wallet_id else source_wallet_id end, biz_id,
      amount, currency
    from public.transfer where type is distinct from 'TRANSFER' and ${isInScope} order by workspace_id, id`,
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
}

const webhooks: AuditedRows = {
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
  idInAudit: 'target',
  sql: `
    select workspace_id, id, biz_id, url, to_json(types), concurrency, status, secret_version, deleted_at
    from public.webhook where ${isInScope} order by workspace_id, id`,
  publicId: id => publicId('webhook', id),
  idName: 'webhookId',
  audited: ({ after: { bizId, url, types, concurrency, status, secretVersion, deletedAt } }) => ({
    bizId,
    url,
    types,
    concurrency,
    status,
    secretVersion,
    deletedAt,
  }),
  stored: ([bizId, url, types, concurrency, status, secretVersion, deletedAt]) => ({
    bizId,
    url,
    types: JSON.parse(types ?? 'null'),
    concurrency: wholeOf(concurrency!),
    status,
    secretVersion: wholeOf(secretVersion!),
    deletedAt: isoTime(deletedAt!),
  }),
}

const limits: AuditedRows = {
  rule: 'limit-audit',
  actions: ['limit.set', 'limit.clear'],
  idInAudit: `target || ' ' || (after ->> 'currency')`,
  sql: `
    select workspace_id, subject || ' ' || currency, per_transfer, per_day, counted_from
    from public.spending_limit where ${isInScope} order by workspace_id, subject, currency`,
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
  stored: ([perTransfer, perDay, countedFrom]) => ({
    perTransfer: plainAmount(perTransfer),
    perDay: plainAmount(perDay),
    countedFrom: wholeOf(countedFrom!),
  }),
}

/**
 * Compares the audit with the rows that its actions created and changed. A row that its owner resets to an earlier
 * state has a genuine MAC; the audit still has the action that followed.
 *
 * Each kind is one merge of two sorted streams, so memory stays constant.
 */
export async function checkAuditedRows(scope: Scope): Promise<void> {
  for (const rows of [workspaces, members, apiKeys, operators, wallets, funding, webhooks, limits])
    await compare(rows, scope)
}

async function compare(audited: AuditedRows, { snapshot, workspaceId, findings }: Scope): Promise<void> {
  const { actions: names, idInAudit, sql } = audited
  const actionSql = `
    select workspace_id, ${idInAudit}, action, target, after
    from public.audit where action = any ($2) and ${isInScope}
    order by workspace_id, (${idInAudit}) collate "C", position`
  const actions = new Lookahead(snapshot.batches(actionSql, [workspaceId, names]))
  const rows = new Lookahead(snapshot.batches(sql, [workspaceId]))
  const keyOfAction = ([workspace, id]: TextRow) => sortKey(workspace!, id!)
  const keyOfRow = ([workspace, id]: TextRow) => sortKey(workspace!, audited.publicId(id!))
  for (;;) {
    let action = await actions.peek()
    const row = await rows.peek()
    const [key] = [...(action ? [keyOfAction(action)] : []), ...(row ? [keyOfRow(row)] : [])].sort()
    if (key === undefined) return
    const subject = action && keyOfAction(action) === key ? action : row!
    let expected: State | null = null
    for (; action && keyOfAction(action) === key; action = await actions.peek()) {
      expected = audited.audited(toAction(action), expected)
      actions.take()
    }
    const isStored = row !== undefined && keyOfRow(row) === key
    if (isStored) rows.take()
    const message = differenceOf(expected, isStored ? audited.stored(row.slice(2)) : null)
    if (message) findings.add({ rule: isStored ? audited.rule : 'audit-target', message, ids: idsOf(audited, subject) })
  }
}

function toAction([, , action, target, after]: TextRow): Action {
  return { action: action as AuditAction, target: `${target}`, after: JSON.parse(after ?? 'null') ?? {} }
}

function differenceOf(audited: State | null, stored: State | null): string | null {
  if (!audited) return 'no action in the audit created it'
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

/** What cannot be read as a time stays as it is: it equals none in the audit. */
function isoTime(text: string | null): string | null {
  const time = dateOf(text)
  return Number.isNaN(time.getTime()) ? text : time.toISOString()
}

/** An amount without the decimals of its currency, which the audit shows and a limit is stored without. */
function plainAmount(amount: unknown): string | null {
  return typeof amount === 'string' ? decimalOf(amount).toFixed() : null
}
