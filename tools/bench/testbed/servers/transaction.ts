/**
 * What a team could write instead of this service: one Express program that checks signed requests, and makes one transaction of plain
 * statements per transfer on the tables of plain/schema.sql.
 */
import { randomUUID } from 'node:crypto'
import type { Request } from 'express'
import pg from 'pg'
import { type Create, Failure, serveSigned, succeed } from './signed-app.ts'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 })

type Wallet = { id: string; workspace_id: string; currency: string; status: string; balance: string; covers: boolean }

/** Eight statements in one transaction. Wallets are locked in the order of their IDs, so that no transfers deadlock. */
async function createTransfer(workspaceId: string, create: Create): Promise<object> {
  const { sourceWalletId, targetWalletId, amount, currency } = create
  const transferId = randomUUID()
  const bizId = create.bizId ?? transferId
  const client = await pool.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query<Wallet>(
      `select id, workspace_id, currency, status, balance, balance >= $3::numeric as covers
       from wallet where id in ($1, $2) order by id for no key update`,
      [sourceWalletId, targetWalletId, amount],
    )
    const source = rows.find(({ id }) => id === sourceWalletId)
    const target = rows.find(({ id }) => id === targetWalletId)
    if (source?.workspace_id !== workspaceId || target?.workspace_id !== workspaceId) throw new Failure(404, 'W001')
    if (source.status !== 'ACTIVE' || target.status !== 'ACTIVE') throw new Failure(409, 'W002')
    if (source.currency !== currency || target.currency !== currency) throw new Failure(422, 'T003')
    if (!source.covers) throw new Failure(422, 'T002')
    const inserted = await client.query<{ created_at: Date }>(
      `insert into transfer (id, workspace_id, biz_id, source_wallet_id, target_wallet_id, amount, currency)
       values ($1, $2, $3, $4, $5, $6, $7) returning created_at`,
      [transferId, workspaceId, bizId, sourceWalletId, targetWalletId, amount, currency],
    )
    const insertEntry =
      'insert into entry (transfer_id, wallet_id, amount, balance_after) values ($1, $2, $3, $4::numeric + $3::numeric)'
    await client.query(insertEntry, [transferId, sourceWalletId, `-${amount}`, source.balance])
    await client.query(insertEntry, [transferId, targetWalletId, amount, target.balance])
    const updateWallet = 'update wallet set balance = balance + $2::numeric, updated_at = now() where id = $1'
    await client.query(updateWallet, [sourceWalletId, `-${amount}`])
    await client.query(updateWallet, [targetWalletId, amount])
    await client.query('commit')
    const { created_at: createdAt } = inserted.rows[0]!
    return { transferId, bizId, status: 'COMPLETED', amount, currency, sourceWalletId, targetWalletId, createdAt }
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

async function readBalance(workspaceId: string, walletId: string): Promise<object> {
  const { rows } = await pool.query(
    'select id, currency, balance, updated_at from wallet where workspace_id = $1 and id = $2',
    [workspaceId, walletId],
  )
  if (!rows[0]) throw new Failure(404, 'W001')
  const { id, currency, balance, updated_at: updatedAt } = rows[0]
  return { walletId: id, currency, balance, updatedAt }
}

const columns = `id as "transferId", biz_id as "bizId", 'COMPLETED' as status, amount, currency,
  source_wallet_id as "sourceWalletId", target_wallet_id as "targetWalletId", remark, created_at as "createdAt"`

async function readOrder(workspaceId: string, bizId: string): Promise<object> {
  const { rows } = await pool.query(`select ${columns} from transfer where workspace_id = $1 and biz_id = $2`, [
    workspaceId,
    bizId,
  ])
  if (!rows[0]) throw new Failure(404, 'T001')
  return rows[0]
}

/** A page, newest first, with the exact total. */
async function readOrders(workspaceId: string, { query }: Request): Promise<object> {
  const [page, size] = [Number(query.page ?? 0), Number(query.size ?? 20)]
  const [orders, totals] = await Promise.all([
    pool.query(
      `select ${columns} from transfer where workspace_id = $1 order by created_at desc, id desc limit $2 offset $3`,
      [workspaceId, size, page * size],
    ),
    pool.query<{ count: string }>('select count(*) from transfer where workspace_id = $1', [workspaceId]),
  ])
  const totalElements = Number(totals.rows[0]!.count)
  return {
    content: orders.rows,
    page: { size, number: page, totalElements, totalPages: Math.ceil(totalElements / size) },
  }
}

serveSigned(createTransfer, app => {
  app.get('/api/v1/wallets/:id/balance', async (request, response) => {
    response.json(succeed(await readBalance(response.locals.workspaceId, request.params.id)))
  })
  app.get('/api/v1/transfer/query/orders', async (request, response) => {
    response.json(succeed(await readOrders(response.locals.workspaceId, request)))
  })
  app.get('/api/v1/transfer/query/orders/:bizId', async (request, response) => {
    response.json(succeed(await readOrder(response.locals.workspaceId, request.params.bizId)))
  })
})
