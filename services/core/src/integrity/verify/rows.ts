import type { KeyObject } from 'node:crypto'
import type { Decimal, LedgerRule, Uuid } from '@workspace-wallet/contract'
import { type AuditRow, auditMac, emptyAuditMac } from '../../audit/chain.ts'
import {
  apiKeyMac,
  holdMac,
  ledgerMac,
  limitMac,
  memberMac,
  operatorMac,
  webhookMac,
  workspaceMac,
} from '../../database/signed-rows.ts'
import type { Snapshot, TextRow } from '../../database/snapshot.ts'
import { type Findings, publicId } from './findings/findings.ts'
import { bytesOf, dateOf, decimalOf, wholeOf } from './values.ts'

/** What to verify, and where to add the findings. */
type Scope = { snapshot: Snapshot; chainKey: KeyObject; workspaceId: Uuid<'workspace'> | null; findings: Findings }

/** A table whose rows have a MAC: the columns that it covers, and how to compute it. */
type SignedTable = {
  rule: LedgerRule
  /** The last two columns are the workspace and the MAC. */
  sql: string
  macOf: (key: KeyObject, row: TextRow) => Buffer
  ids: (row: TextRow) => Record<string, string>
}

const ledgers: SignedTable = {
  rule: 'ledger-mac',
  sql: `
    select status, wallet_count, order_count, hold_count, limit_count, position, journal_head, last_posted_at, halt_reason, revision,
      workspace_id, mac
    from public.ledger where $1::uuid is null or workspace_id = $1 order by workspace_id`,
  macOf: (
    key,
    [
      status,
      walletCount,
      orderCount,
      holdCount,
      limitCount,
      position,
      journalHead,
      lastPostedAt,
      haltReason,
      revision,
      workspaceId,
    ],
  ) =>
    ledgerMac(key, {
      workspaceId: workspaceId as Uuid<'workspace'>,
      status: status!,
      walletCount: wholeOf(walletCount!),
      orderCount: wholeOf(orderCount!),
      holdCount: wholeOf(holdCount!),
      limitCount: wholeOf(limitCount!),
      position: wholeOf(position!),
      journalHead: bytesOf(journalHead!),
      lastPostedAt: dateOf(lastPostedAt!),
      haltReason: haltReason!,
      revision: wholeOf(revision!),
    }),
  ids: () => ({}),
}

const workspaces: SignedTable = {
  rule: 'workspace-mac',
  sql: `
    select name, created_at, updated_at, deleted_at, revision, id, mac
    from public.workspace where $1::uuid is null or id = $1 order by id`,
  macOf: (key, [name, createdAt, updatedAt, deletedAt, revision, id]) =>
    workspaceMac(key, {
      id: id as Uuid<'workspace'>,
      name: name!,
      createdAt: dateOf(createdAt!),
      updatedAt: dateOf(updatedAt!),
      deletedAt: timeOrNull(deletedAt!),
      revision: wholeOf(revision!),
    }),
  ids: () => ({}),
}

const holds: SignedTable = {
  rule: 'hold-mac',
  sql: `
    select id, number, wallet_number, biz_id, wallet_id, currency, amount, captured, remaining, status, expires_at,
      reference, remark, created_at, updated_at, revision, workspace_id, mac
    from public.hold where $1::uuid is null or workspace_id = $1 order by workspace_id, id`,
  macOf: (key, row) =>
    holdMac(key, {
      id: row[0] as Uuid<'hold'>,
      number: wholeOf(row[1]!),
      walletNumber: wholeOf(row[2]!),
      bizId: row[3]!,
      walletId: row[4] as Uuid<'wallet'>,
      currency: row[5]!,
      amount: row[6]!,
      captured: decimalOf(row[7]!),
      remaining: decimalOf(row[8]!),
      status: row[9]!,
      expiresAt: dateOf(row[10]!),
      reference: row[11]!,
      remark: row[12]!,
      createdAt: dateOf(row[13]!),
      updatedAt: dateOf(row[14]!),
      revision: wholeOf(row[15]!),
      workspaceId: row[16] as Uuid<'workspace'>,
    }),
  ids: ([id]) => ({ holdId: publicId('hold', id!) }),
}

const limits: SignedTable = {
  rule: 'limit-mac',
  sql: `
    select subject, currency, per_transfer, per_day, day, spent, counted_from, created_at, updated_at, revision,
      workspace_id, mac
    from public.spending_limit where $1::uuid is null or workspace_id = $1 order by workspace_id, subject, currency`,
  macOf: (key, row) =>
    limitMac(key, {
      subject: row[0]!,
      currency: row[1]!,
      perTransfer: decimalOrNull(row[2]!),
      perDay: decimalOrNull(row[3]!),
      day: row[4]!,
      spent: decimalOf(row[5]!),
      countedFrom: wholeOf(row[6]!),
      createdAt: dateOf(row[7]!),
      updatedAt: dateOf(row[8]!),
      revision: wholeOf(row[9]!),
      workspaceId: row[10] as Uuid<'workspace'>,
    }),
  ids: ([subject, currency]) => ({ limit: `${subject}`, currency: `${currency}` }),
}

const members: SignedTable = {
  rule: 'member-mac',
  sql: `
    select user_id, created_at, removed_at, revision, workspace_id, mac
    from public.member where $1::uuid is null or workspace_id = $1 order by workspace_id, user_id`,
  macOf: (key, [userId, createdAt, removedAt, revision, workspaceId]) =>
    memberMac(key, {
      workspaceId: workspaceId as Uuid<'workspace'>,
      userId: userId!,
      createdAt: dateOf(createdAt!),
      removedAt: timeOrNull(removedAt!),
      revision: wholeOf(revision!),
    }),
  ids: ([userId]) => ({ userId: `${userId}` }),
}

const apiKeys: SignedTable = {
  rule: 'key-mac',
  sql: `
    select id, owner_user_id, name, status, to_json(scopes), to_json(ip_allowlist), secret, secret_version,
      previous_secret, previous_secret_until, expires_at, deleted_at, created_at, updated_at, revision, workspace_id, mac
    from public.api_key where $1::uuid is null or workspace_id = $1 order by workspace_id, id`,
  macOf: (key, row) =>
    apiKeyMac(key, {
      id: row[0] as Uuid<'apiKey'>,
      ownerUserId: row[1]!,
      name: row[2]!,
      status: row[3]!,
      scopes: JSON.parse(row[4] ?? 'null'),
      ipAllowlist: JSON.parse(row[5] ?? 'null'),
      secret: row[6]!,
      secretVersion: wholeOf(row[7]!),
      previousSecret: row[8]!,
      previousSecretUntil: timeOrNull(row[9]!),
      expiresAt: timeOrNull(row[10]!),
      deletedAt: timeOrNull(row[11]!),
      createdAt: dateOf(row[12]!),
      updatedAt: dateOf(row[13]!),
      revision: wholeOf(row[14]!),
      workspaceId: row[15] as Uuid<'workspace'>,
    }),
  ids: ([id]) => ({ apiKey: publicId('apiKey', id!) }),
}

const webhooks: SignedTable = {
  rule: 'webhook-mac',
  sql: `
    select id, biz_id, biz_id_mac, url, to_json(types), concurrency, status, secret, secret_version, previous_secret,
      previous_secret_until, deleted_at, created_at, updated_at, revision, workspace_id, mac
    from public.webhook where $1::uuid is null or workspace_id = $1 order by workspace_id, id`,
  macOf: (key, row) =>
    webhookMac(key, {
      id: row[0] as Uuid<'webhook'>,
      bizId: row[1]!,
      bizIdMac: bytesOf(row[2]!),
      url: row[3]!,
      types: JSON.parse(row[4] ?? 'null'),
      concurrency: wholeOf(row[5]!),
      status: row[6]!,
      secret: row[7]!,
      secretVersion: wholeOf(row[8]!),
      previousSecret: row[9]!,
      previousSecretUntil: timeOrNull(row[10]!),
      deletedAt: timeOrNull(row[11]!),
      createdAt: dateOf(row[12]!),
      updatedAt: dateOf(row[13]!),
      revision: wholeOf(row[14]!),
      workspaceId: row[15] as Uuid<'workspace'>,
    }),
  ids: ([id]) => ({ webhookId: publicId('webhook', id!) }),
}

/** Operators belong to no workspace. */
const operators: SignedTable = {
  rule: 'operator-mac',
  sql: `
    select name, role, status, token_hash, token_version, expires_at, created_at, updated_at, revision, null, mac
    from public.operator where $1::uuid is null order by name`,
  macOf: (key, row) =>
    operatorMac(key, {
      name: row[0]!,
      role: row[1]!,
      status: row[2]!,
      tokenHash: bytesOf(row[3]!),
      tokenVersion: wholeOf(row[4]!),
      expiresAt: timeOrNull(row[5]!),
      createdAt: dateOf(row[6]!),
      updatedAt: dateOf(row[7]!),
      revision: wholeOf(row[8]!),
    }),
  ids: ([name]) => ({ operator: `${name}` }),
}

/** Checks the MAC of each row that controls money, access or deliveries. Wallets are checked while their flows are replayed. */
export async function checkSignedRows({ snapshot, chainKey, workspaceId, findings }: Scope): Promise<void> {
  for (const { rule, sql, macOf, ids } of [workspaces, ledgers, holds, limits, members, apiKeys, operators, webhooks])
    for await (const rows of snapshot.batches(sql, [workspaceId]))
      for (const row of rows) {
        const [workspace, mac] = row.slice(-2)
        if (macOf(chainKey, row).equals(bytesOf(mac!))) continue
        const workspaceIds = workspace === null ? {} : { workspaceId: publicId('workspace', workspace!) }
        findings.add({ rule, message: 'its MAC does not match its row', ids: { ...workspaceIds, ...ids(row) } })
      }
}

const auditSql = `
  select workspace_id, position, id, at, actor, action, target, before, after, mac
  from public.audit where $1::uuid is null or workspace_id = $1
  order by workspace_id, position, id`

/** Replays the audit of each workspace, and, without a workspaceId, the audit of actions on no workspace. */
export async function checkAudit({ snapshot, chainKey, workspaceId, findings }: Scope): Promise<void> {
  let chain: AuditChain | null = null
  for await (const rows of snapshot.batches(auditSql, [workspaceId]))
    for (const row of rows) {
      if (chain?.workspaceId !== row[0]) chain = new AuditChain(chainKey, findings, row[0]!)
      chain!.action(row)
    }
}

/** Replays the actions of one audit. Like the replay of a wallet, it continues from the stored values. */
class AuditChain {
  readonly workspaceId: string | null
  readonly #key: KeyObject
  readonly #findings: Findings
  #position = 0
  #id = 0
  #mac: Buffer = emptyAuditMac

  constructor(key: KeyObject, findings: Findings, workspaceId: string | null) {
    this.workspaceId = workspaceId
    this.#key = key
    this.#findings = findings
  }

  action(row: TextRow): void {
    const action = toAction(row)
    const id = wholeOf(row[2]!)
    const mac = bytesOf(row[9]!)
    if (action.position !== this.#position + 1)
      this.#report('audit-position', row, `its position is ${row[1]}, expected ${this.#position + 1}`)
    else if (!auditMac(this.#key, action, this.#mac).equals(mac))
      this.#report('audit-chain', row, 'its MAC does not match its content and the action before it')
    if (!(id > this.#id)) this.#report('audit-position', row, 'it is listed before the action that it follows')
    this.#position = action.position
    this.#id = id
    this.#mac = mac
  }

  #report(rule: LedgerRule, [workspaceId, , id, , , action]: TextRow, message: string): void {
    const ids = workspaceId === null ? {} : { workspaceId: publicId('workspace', workspaceId!) }
    this.#findings.add({ rule, message, ids: { ...ids, audit: wholeOf(id!), action: `${action}` } })
  }
}

function toAction([workspaceId, position, , at, actor, action, target, before, after]: TextRow): AuditRow {
  return {
    workspaceId: workspaceId as Uuid<'workspace'>,
    position: wholeOf(position!),
    at: dateOf(at!),
    actor: actor!,
    action: action as AuditRow['action'],
    target: target!,
    before: before!,
    after: after!,
  }
}

function decimalOrNull(text: string | null): Decimal | null {
  return text === null ? null : decimalOf(text)
}

/** Null only for a null column. An unreadable time is an invalid date. */
function timeOrNull(text: string | null): Date | null {
  return text === null ? null : dateOf(text)
}
