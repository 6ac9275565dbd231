import { type Check, ledgerCount, rowIds, runChecks } from './checks.ts'
import { type Extent, ofHolds } from './extent.ts'
import type { Scope } from './scope.ts'

/** Checks holds against wallets, captures and journal. Their MACs are checked with the other signed rows. */
export function checkHolds({ snapshot, workspaceId, findings, extent }: Scope): Promise<void> {
  return runChecks(snapshot, workspaceId, findings, [
    numbers,
    ledgerCounts,
    walletCounts,
    sums,
    available,
    captured(extent),
    draws(extent),
    lives(extent),
  ])
}

const numbers: Check = {
  rule: 'hold-number',
  sql: `
    select workspace_id, id, number, expected, wallet_number, expected_of_wallet from (
      select workspace_id, id, number, wallet_number,
        lag(number, 1, 0::bigint) over (partition by workspace_id order by number)::numeric + 1::numeric as expected,
        lag(wallet_number, 1, 0::bigint)
          over (partition by workspace_id, wallet_id order by wallet_number)::numeric + 1::numeric as expected_of_wallet
      from {here}.hold where $1::uuid is null or workspace_id = $1) h
    where number::numeric is distinct from expected or wallet_number::numeric is distinct from expected_of_wallet
    order by workspace_id, number, wallet_number`,
  violation: ([workspace, id, number, expected, walletNumber, expectedOfWallet]) => ({
    message:
      number === expected
        ? `its number among the holds of its wallet is ${walletNumber}, expected ${expectedOfWallet}`
        : `its number is ${number}, expected ${expected}`,
    ids: rowIds('hold', workspace, id),
  }),
}

const ledgerCounts = ledgerCount('ledger-hold-count', { counter: 'hold_count', table: 'hold', what: 'holds' })

const walletCounts: Check = {
  rule: 'wallet-hold-count',
  sql: `
    select w.workspace_id, w.id, w.hold_count, coalesce(h.found, 0)
    from {here}.wallet w left join (
      select workspace_id, wallet_id, count(*) as found from {here}.hold where $1::uuid is null or workspace_id = $1
      group by workspace_id, wallet_id) h on h.workspace_id = w.workspace_id and h.wallet_id = w.id
    where ($1::uuid is null or w.workspace_id = $1) and w.hold_count is distinct from coalesce(h.found, 0)
    order by w.workspace_id, w.id`,
  violation: ([workspace, id, counted, found]) => ({
    message: `its hold_count is ${counted}, but it has ${found} holds`,
    ids: rowIds('wallet', workspace, id),
  }),
}

const sums: Check = {
  rule: 'hold-sum',
  sql: `
    select w.workspace_id, w.id, w.held, coalesce(h.remaining, 0), w.held_until, h.expires_at
    from {here}.wallet w left join (
      select workspace_id, wallet_id, sum(remaining) as remaining, min(expires_at) as expires_at
      from {here}.hold where status = 'OPEN' and ($1::uuid is null or workspace_id = $1)
      group by workspace_id, wallet_id) h on h.workspace_id = w.workspace_id and h.wallet_id = w.id
    where ($1::uuid is null or w.workspace_id = $1) and (w.held is distinct from coalesce(h.remaining, 0)
      or (w.held_until is null) <> (h.expires_at is null) or w.held_until > h.expires_at)
    order by w.workspace_id, w.id`,
  violation: ([workspace, id, held, remaining, until, expiresAt]) => ({
    message: `it holds ${held} until ${until}, but ${remaining} remains of its open holds, of which the first expires at ${expiresAt}`,
    ids: rowIds('wallet', workspace, id),
  }),
}

const available: Check = {
  rule: 'wallet-held',
  sql: `
    select workspace_id, id, held, balance from {here}.wallet
    where kind = 'CUSTOMER' and held > balance and ($1::uuid is null or workspace_id = $1)
    order by workspace_id, id`,
  violation: ([workspace, id, held, balance]) => ({
    message: `it holds ${held}, and its balance is ${balance}`,
    ids: rowIds('wallet', workspace, id),
  }),
}

const captured = (extent: Extent): Check => ({
  rule: 'hold-captured',
  sql: `
    select h.workspace_id, h.id, h.captured, coalesce(d.amount, 0)
    from ${ofHolds('hold', extent)} h left join (
      select workspace_id, hold_id, sum(amount) as amount
      from ${ofHolds('transfer', extent)} t where hold_id is not null and ($1::uuid is null or workspace_id = $1)
      group by workspace_id, hold_id) d on d.workspace_id = h.workspace_id and d.hold_id = h.id
    where ($1::uuid is null or h.workspace_id = $1) and h.captured is distinct from coalesce(d.amount, 0)
    order by h.workspace_id, h.id`,
  violation: ([workspace, id, counted, found]) => ({
    message: `its captured is ${counted}, but its captures sum to ${found}`,
    ids: rowIds('hold', workspace, id),
  }),
})

const draws = (extent: Extent): Check => ({
  rule: 'hold-captured',
  sql: `
    select d.workspace_id, d.id, d.amount, d.hold_remaining, coalesce(d.before, h.amount), h.expires_at
    from (
      select *, lag(hold_remaining) over (partition by workspace_id, hold_id order by position) as before
      from ${ofHolds('transfer', extent)} t where hold_id is not null and ($1::uuid is null or workspace_id = $1)) d
    left join {here}.hold h on h.workspace_id = d.workspace_id and h.id = d.hold_id
      and h.wallet_id = d.source_wallet_id and h.currency = d.currency
    where (d.created_at >= h.created_at and d.created_at < h.expires_at and d.amount <= coalesce(d.before, h.amount)
      and d.hold_remaining in (coalesce(d.before, h.amount) - d.amount, 0::numeric)) is not true
    order by d.workspace_id, d.position`,
  violation: ([workspace, id, amount, remaining, before, expiresAt]) => ({
    message:
      expiresAt === null
        ? 'it captures a hold that is not on its source wallet'
        : `it captures ${amount} of ${before}, and ${remaining} remains; or it is not within the time of the hold`,
    ids: rowIds('transfer', workspace, id),
  }),
})

/** The events of each hold: `c` is the first one, which must create it, `e` the second one, and `d` its last capture. */
const lives = (extent: Extent): Check => ({
  rule: 'hold-life',
  sql: `
    with event as (
      select *, row_number() over life as place, count(*) over (partition by workspace_id, hold_id) as events
      from ${ofHolds('journal', extent)} j where hold_id is not null and ($1::uuid is null or workspace_id = $1)
      window life as (partition by workspace_id, hold_id order by position))
    select coalesce(h.workspace_id, c.workspace_id), coalesce(h.id, c.hold_id), h.status, c.type, e.type, c.events
    from (select * from ${ofHolds('hold', extent)} read where $1::uuid is null or workspace_id = $1) h
    full join (select * from event where place = 1) c on c.workspace_id = h.workspace_id and c.hold_id = h.id
    left join event e on e.workspace_id = h.workspace_id and e.hold_id = h.id and e.place = 2
    left join (
      select distinct on (workspace_id, hold_id) workspace_id, hold_id, position, created_at, hold_remaining,
        min(position) over (partition by workspace_id, hold_id) as first_position
      from ${ofHolds('transfer', extent)} t where hold_id is not null and ($1::uuid is null or workspace_id = $1)
      order by workspace_id, hold_id, position desc) d on d.workspace_id = h.workspace_id and d.hold_id = h.id
    where (
      c.type = 'hold.created' and c.status = 'OPEN' and c.captured = 0::numeric and c.remaining = h.amount
      and c.wallet_id = h.wallet_id and c.created_at = h.created_at and coalesce(d.first_position > c.position, true)
      and case
        when h.status = 'OPEN' then
          c.events = 1 and h.remaining = coalesce(d.hold_remaining, h.amount)
          and h.updated_at = coalesce(d.created_at, h.created_at)
        when h.status = 'CAPTURED' then
          c.events = 1 and h.remaining = 0::numeric and d.hold_remaining = 0::numeric and h.updated_at = d.created_at
        else
          c.events = 2 and e.type = 'hold.' || lower(h.status) and e.status = h.status and e.wallet_id = h.wallet_id
          and e.captured = h.captured and e.remaining = 0::numeric and h.remaining = 0::numeric
          and coalesce(d.hold_remaining > 0::numeric and d.position < e.position, true)
          and case h.status
            when 'RELEASED' then e.created_at < h.expires_at and h.updated_at = e.created_at
            when 'EXPIRED' then e.created_at >= h.expires_at and h.updated_at = h.expires_at end
        end) is not true
    order by 1, 2`,
  violation: ([workspace, id, status, first, second, events]) => ({
    message:
      status === null
        ? 'it is in the journal, and its row does not exist'
        : `it is ${status}, which is not what its captures and its ${events ?? 0} events say (${first ?? 'none'}, then ${second ?? 'none'})`,
    ids: rowIds('hold', workspace, id),
  }),
})
