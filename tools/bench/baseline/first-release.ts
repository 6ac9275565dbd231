/**
 * Posts batches as the first release did: one transaction of two round trips, lock and load, then write and commit, with the
 * statements of this folder. Only PostgreSQL is measured, so the MACs are constants of the right length.
 */
import { readFileSync } from 'node:fs'
import { Decimal } from '@workspace-wallet/contract'
import pg from 'pg'
import { bytesArray, plainArray, run, statement, textArray } from '../../../services/core/src/database/statement.ts'
import {
  type LedgerRequest,
  type Posting,
  walletsOf,
  workspacesOf,
} from '../../../services/core/src/ledger/posting/requests.ts'

type Ledger = { workspaceId: string; orderCount: number }
type Wallet = { workspaceId: string; id: string; balance: string; sequence: number; orderCount: number; now: Date }

const lockLedgers = statement<Ledger>('first-release-lock-ledgers', sqlOf('lock-ledgers'))
const loadWallets = statement<Wallet>('first-release-load-wallets', sqlOf('load-wallets'))
const writePostings = statement('first-release-write-postings', sqlOf('write-postings'))
const begin =
  "begin; set local enable_seqscan = off; set local statement_timeout = 3000; set local application_name = 'core bench'"
const mac = Buffer.alloc(33, 1)

/** A connection that sends statements without waiting for the previous answer, as `postAsFirstRelease` needs it. */
export async function connectFirstRelease(ownerUrl: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: ownerUrl, pipeline: true })
  await client.connect()
  return client
}

/** Posts a batch of transfers with new IDs. */
export async function postAsFirstRelease(client: pg.Client, requests: LedgerRequest[]): Promise<void> {
  const keys = walletsOf(requests)
  const [, ledgers, wallets] = await Promise.all([
    client.query(begin),
    run(client, lockLedgers, [plainArray(workspacesOf(requests))]),
    run(client, loadWallets, [
      plainArray(keys.map(({ workspaceId }) => workspaceId)),
      plainArray(keys.map(({ id }) => id)),
    ]),
  ])
  const postings = requests.flatMap(({ workspaceId, commands }) =>
    commands.map(command => ({ workspaceId, ...(command as Posting) })),
  )
  const values = valuesOf(postings, ledgers, wallets)
  await Promise.all([run(client, writePostings, values), client.query('commit')])
}

/** The parameters of write-postings.sql. Changes the rows of ledgers and wallets. */
function valuesOf(postings: (Posting & { workspaceId: string })[], ledgers: Ledger[], wallets: Wallet[]): string[] {
  const now = wallets[0]!.now.toISOString()
  const ledgerOf = new Map(ledgers.map(ledger => [ledger.workspaceId, ledger]))
  const walletOf = new Map(wallets.map(wallet => [wallet.id, wallet]))
  const move = (id: string, amount: Decimal): Wallet => {
    const { balance, sequence, orderCount, ...wallet } = walletOf.get(id)!
    const after = new Decimal(balance).plus(amount).toFixed(2)
    const moved = { ...wallet, balance: after, sequence: sequence + 1, orderCount: orderCount + 1 }
    walletOf.set(id, moved)
    return moved
  }
  const rows = postings.map(posting => ({
    ...posting,
    number: ++ledgerOf.get(posting.workspaceId)!.orderCount,
    source: move(posting.sourceWalletId, new Decimal(posting.amount).negated()),
    target: move(posting.targetWalletId, new Decimal(posting.amount)),
  }))
  const after = [...walletOf.values()]
  return [
    plainArray(rows.map(row => row.workspaceId)),
    plainArray(rows.map(row => row.transferId)),
    plainArray(rows.map(row => row.type)),
    textArray(rows.map(row => row.bizId)),
    plainArray(rows.map(row => row.number)),
    plainArray(rows.map(row => row.amount)),
    plainArray(rows.map(row => row.currency)),
    plainArray(rows.map(row => row.sourceWalletId)),
    plainArray(rows.map(row => row.targetWalletId)),
    plainArray(rows.map(row => row.source.sequence)),
    plainArray(rows.map(row => row.target.sequence)),
    textArray(rows.map(row => row.remark)),
    textArray(rows.map(row => row.actor)),
    textArray(rows.map(row => row.requestId)),
    textArray(rows.map(row => row.clientAddress)),
    plainArray(rows.map(() => now)),
    plainArray(rows.map(row => row.source.balance)),
    plainArray(rows.map(row => row.target.balance)),
    plainArray(rows.map(row => row.source.orderCount)),
    plainArray(rows.map(row => row.target.orderCount)),
    bytesArray(rows.map(() => mac)),
    bytesArray(rows.map(() => mac)),
    plainArray(after.map(row => row.workspaceId)),
    plainArray(after.map(row => row.id)),
    plainArray(after.map(row => row.balance)),
    plainArray(after.map(row => row.sequence)),
    plainArray(after.map(row => row.orderCount)),
    bytesArray(after.map(() => mac)),
    plainArray(after.map(() => now)),
    plainArray(ledgers.map(row => row.workspaceId)),
    plainArray(ledgers.map(row => row.orderCount)),
    plainArray(ledgers.map(() => now)),
  ]
}

function sqlOf(name: string): string {
  return readFileSync(new URL(`./${name}.sql`, import.meta.url), 'utf8')
}
