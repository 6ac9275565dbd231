/**
 * Compares the books of the shop with the statements of the wallet service, to the unit:
 * `node examples/shop/reconcile.ts 2026-11-21 2026-11-22`. Prints each difference, and then exits with 1.
 */
import { createWalletClient, RequestError } from '@workspace-wallet/client'
import { Books } from './books.ts'
import { Database } from './database.ts'
import { toDecimal } from './money.ts'
import { WalletEvents } from './wallet-events.ts'

const {
  BASE_URL: baseUrl = '',
  API_KEY: apiKey = '',
  API_SECRET: apiSecret = '',
  SHOP_DATABASE = 'shop.db',
} = process.env
const times = process.argv.slice(2).map(text => new Date(text))
if (times.length !== 2 || times.some(time => Number.isNaN(time.getTime()))) {
  console.error('Give two times: node examples/shop/reconcile.ts 2026-11-21 2026-11-22')
  process.exit(2)
}
const [from, to] = times.map(time => time.toISOString()) as [string, string]

const client = createWalletClient({ baseUrl, apiKey, apiSecret })
const database = new Database(SHOP_DATABASE)
await new WalletEvents(database, client, new Books(database)).catchUp().catch(exitWithReason)

const sums = `
  select coalesce(sum(cents) filter (where booked_at < ?1), 0) as opening,
    coalesce(sum(cents) filter (where booked_at >= ?1 and cents > 0), 0) as totalIn,
    coalesce(-sum(cents) filter (where booked_at >= ?1 and cents < 0), 0) as totalOut,
    coalesce(sum(cents), 0) as closing
  from entry where wallet_id = ?2 and booked_at < ?3`

const wallets = database.all('select wallet_id, biz_id from wallet order by biz_id')
for (const { wallet_id, biz_id } of wallets) {
  const statement = await client.wallets.statement(wallet_id as string, from, to).catch(exitWithReason)
  const booked = database.first(sums, from, wallet_id as string, to)!
  for (const sum of ['opening', 'totalIn', 'totalOut', 'closing'] as const) {
    const inBooks = toDecimal(booked[sum] as bigint)
    if (inBooks === statement[sum]) continue
    console.log(`${biz_id} (${wallet_id}): ${sum} is ${inBooks} in the books and ${statement[sum]} in the statement.`)
    process.exitCode = 1
  }
}
console.log(
  `${wallets.length} wallets from ${from} to ${to}: ${process.exitCode ? 'they differ' : 'they match their statements'}.`,
)

/** A failed request has a message for people, such as the sentence of the service for a time in the future. */
function exitWithReason(error: unknown): never {
  if (!(error instanceof RequestError)) throw error
  console.error(error.message)
  process.exit(1)
}
