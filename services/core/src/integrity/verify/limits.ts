import { type AuditAction, type Decimal, type LedgerRule, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type { TextRow } from '../../database/snapshot.ts'
import { limitKey, walletSubject } from '../../ledger/decide/spending.ts'
import { ledgerCount, runChecks, workspaceIds } from './checks.ts'
import { type Extent, fundingActions } from './extent.ts'
import { type Findings, publicId } from './findings/findings.ts'
import { genuineActions } from './genuine-actions.ts'
import { Lookahead, sortKey } from './lookahead.ts'
import type { Scope } from './scope.ts'
import { decimalOf, wholeOf } from './values.ts'

const isInScope = '($1::uuid is null or workspace_id = $1)'

const limitActions = {
  from: '{here}.audit',
  key: 'null::text',
  where: `action in ('limit.set', 'limit.clear') and action not in ${fundingActions} and ${isInScope}`,
}

const limited = `
  select workspace_id from {here}.audit where action = 'limit.set' and action not in ${fundingActions}`

/** An incremental verification reads the days since the one on which the last verification ended. */
const transfersSince = `(
  select transfer.* from (${limited} group by workspace_id) of_workspace
  left join {here}.verified_ledger verified on verified.workspace_id = of_workspace.workspace_id
  cross join lateral (
    select * from {here}.transfer row
    where row.workspace_id = of_workspace.workspace_id
      and row.created_at >= coalesce(date_trunc('day', verified.posted_at, 'UTC'), '-infinity') offset 0) transfer)`

/** The withdrawals and transfers of all workspaces whose audit has a limit. */
const transfersSql = (extent: Extent) => `
  select workspace_id, id, position, actor, source_wallet_id, currency, amount, created_at
  from ${extent === 'WHOLE' ? '{here}.transfer' : transfersSince} t
  where type is distinct from 'DEPOSIT' and ${isInScope} and workspace_id in (${limited})
  order by workspace_id, position`

const rowsSql = `
  select workspace_id, subject, currency, day, spent from {here}.spending_limit
  where (per_transfer is not null or per_day is not null) and ${isInScope} order by workspace_id`

/**
 * Checks each limit since it began to count: on no day more was spent than it allowed then, and what it counts is what was spent
 * on the last day. Its amounts come from the audit, so that a row that was removed for a while or reset makes no difference.
 *
 * One pass over the sorted streams of actions, transfers and rows; the limits of one workspace are in memory.
 */
export async function checkLimits(scope: Scope): Promise<void> {
  const { snapshot, workspaceId, findings, extent, baseline } = scope
  await runChecks(snapshot, workspaceId, findings, [counts])
  const actions = new Lookahead(genuineActions(scope, limitActions))
  const transfers = new Lookahead(snapshot.batches(transfersSql(extent), [workspaceId]))
  const rows = new Lookahead(snapshot.batches(rowsSql, [workspaceId]))
  for (let first = await actions.peek(); first; first = await actions.peek()) {
    const workspace = first.action.workspaceId
    const limits = new Map<string, LimitReplay>()
    const firstDay = baseline.get(`${workspace}`)?.postedAt?.slice(0, dayLength) ?? null
    for await (const { action } of rowsOf(actions, workspace, each => each.action.workspaceId)) {
      const state = JSON.parse(action.after ?? 'null') ?? {}
      const key = limitKey({ subject: subjectOf(action.target), currency: textOf(state.currency) })
      const limit = limits.get(key) ?? new LimitReplay(findings, workspace, key, firstDay)
      limits.set(key, limit)
      limit.action(action.action, state)
    }
    for await (const transfer of rowsOf(transfers, workspace, workspaceOf)) {
      const [, , , actor, wallet, currency] = transfer
      for (const subject of [`${actor}`, walletSubject(wallet as Uuid<'wallet'>)])
        limits.get(limitKey({ subject, currency: `${currency}` }))?.transfer(transfer)
    }
    for await (const [, subject, currency, day, spent] of rowsOf(rows, workspace, workspaceOf))
      limits.get(limitKey({ subject: `${subject}`, currency: `${currency}` }))?.row(day!, spent!)
  }
}

const counts = ledgerCount('ledger-limit-count', {
  counter: 'limit_count',
  table: 'spending_limit',
  where: '(per_transfer is not null or per_day is not null)',
  what: 'limits',
})

const workspaceOf = (row: TextRow) => row[0]!

/** Takes the rows of a workspace, and those of workspaces before it, which nobody asked for. */
async function* rowsOf<Row>(
  rows: Lookahead<Row>,
  workspace: TextRow[number],
  of: (row: Row) => TextRow[number],
): AsyncGenerator<Row> {
  for (let row = await rows.peek(); row; row = await rows.peek()) {
    if (sortKey(of(row), null) > sortKey(workspace, null)) return
    rows.take()
    if (of(row) === workspace) yield row
  }
}

/** The text of a field of an action. An object has none, and its conversion to text can fail. */
function textOf(value: unknown): string {
  return typeof value === 'object' ? 'an object' : `${value}`
}

/** No amount that the service writes has more characters: 38 digits and a point. */
const longestAmount = 39

/** NaN for what is no amount of a limit. */
function amountOf(text: string): Decimal {
  return decimalOf(text.length > longestAmount ? null : text)
}

/** The stored subject of the target of an action. */
function subjectOf(target: string): string {
  const wallet = uuidFromId('wallet', target)
  return wallet ? walletSubject(wallet) : `key:${target}`
}

const dayLength = 'yyyy-mm-dd'.length

/** The amounts of a limit for the transfers after a position. */
type Bounds = { position: number; perTransfer: Decimal | null; perDay: Decimal | null }

/** Replays one limit: the actions on it, the transfers that it counts, then its row. */
class LimitReplay {
  readonly #findings: Findings
  readonly #workspace: TextRow[number]
  readonly #key: string
  /** Since it began to count, in order; empty if it is cleared. */
  #bounds: Bounds[] = []
  #countedFrom = Number.NaN
  /** The first day whose transfers are replayed; null for all. */
  readonly #firstDay: string | null
  #day: TextRow[number] = null
  #spent: Decimal = decimalOf('0')

  constructor(findings: Findings, workspace: TextRow[number], key: string, firstDay: string | null) {
    this.#firstDay = firstDay
    this.#findings = findings
    this.#workspace = workspace
    this.#key = key
  }

  action(action: AuditAction, after: Record<string, unknown>): void {
    const countedFrom = wholeOf(textOf(after.countedFrom))
    if (action === 'limit.clear' || countedFrom !== this.#countedFrom) this.#bounds = []
    this.#countedFrom = countedFrom
    const amount = (field: string) => (after[field] === null ? null : amountOf(textOf(after[field])))
    if (action === 'limit.set')
      this.#bounds.push({
        position: wholeOf(textOf(after.position)),
        perTransfer: amount('perTransfer'),
        perDay: amount('perDay'),
      })
  }

  transfer([, id, at, , , , amount, createdAt]: TextRow): void {
    const position = wholeOf(at!)
    const bounds = this.#bounds.findLast(each => each.position < position)
    if (!bounds) return
    const day = `${createdAt}`.slice(0, dayLength)
    if (day !== this.#day) this.#spent = decimalOf('0')
    this.#day = day
    this.#spent = this.#spent.plus(decimalOf(amount!))
    // Not `greaterThan`, which is false for a damaged amount.
    if (bounds.perTransfer && !decimalOf(amount!).lessThanOrEqualTo(bounds.perTransfer))
      this.#report(
        'limit-exceeded',
        `transfer ${publicId('transfer', id!)} of ${amount} exceeds ${bounds.perTransfer.toFixed()} for each transfer`,
      )
    if (bounds.perDay && !this.#spent.lessThanOrEqualTo(bounds.perDay))
      this.#report(
        'limit-exceeded',
        `transfer ${publicId('transfer', id!)} makes it ${this.#spent.toFixed()} on ${day}, above ${bounds.perDay.toFixed()} a day`,
      )
  }

  row(day: TextRow[number], spent: TextRow[number]): void {
    if (this.#bounds.length === 0) return
    // The last transfer that it counts is older.
    if (this.#firstDay !== null && this.#day === null && `${day}` < this.#firstDay) return
    const isLastDay = this.#day === null || day === this.#day
    if (!isLastDay || !decimalOf(spent).equals(this.#spent))
      this.#report(
        'limit-spent',
        `it counts ${spent} on ${day}, but ${this.#spent.toFixed()} was spent on ${this.#day ?? 'no day'}`,
      )
  }

  #report(rule: LedgerRule, message: string): void {
    const [limit = '', currency = ''] = this.#key.split(' ')
    this.#findings.add({ rule, message, ids: { ...workspaceIds(this.#workspace), limit, currency } })
  }
}
