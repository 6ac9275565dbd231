/**
 * What a team could write instead of this service: one Express program that makes the same checks of a signed request (key,
 * timestamp, nonce in Redis, HMAC over the hash of the body), and one transaction of plain statements per transfer on the
 * tables of plain/schema.sql. It answers as the service does, so that the same load generator measures both.
 */
import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import express, { type ErrorRequestHandler, type Request, type RequestHandler } from 'express'
import pg from 'pg'
import { createClient } from 'redis'

type Key = { apiKey: string; apiSecret: string; workspaceId: string }

class Failure extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

const { DATABASE_URL, REDIS_URL, KEYS = '[]' } = process.env
const keys = new Map((JSON.parse(KEYS) as Key[]).map(key => [key.apiKey, key]))
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 20 })
const redis = createClient({ url: REDIS_URL! })
await redis.connect()

/** The pipeline of section 5.3, without IP lists and scopes, which no request of the benchmark uses. */
const authenticate: RequestHandler = async (request, response, next) => {
  const key = keys.get(request.get('X-Api-Key') ?? '')
  if (!key) throw new Failure(401, 'GA2011')
  const timestamp = request.get('X-Timestamp') ?? ''
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 60)) throw new Failure(401, 'GA2013')
  const nonce = request.get('X-Nonce') ?? ''
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const bodyHash = createHash('sha256').update(body).digest('hex')
  const message = [request.method, request.path, timestamp, nonce, bodyHash].join('\n')
  const expected = createHmac('sha256', key.apiSecret).update(message).digest()
  const signature = Buffer.from(request.get('X-Signature') ?? '', 'base64')
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) throw new Failure(401, 'GA2012')
  if (!(await redis.set(`nonce:${key.apiKey}:${nonce}`, '', { NX: true, PX: 180_000 })))
    throw new Failure(401, 'GA2013')
  response.locals.workspaceId = key.workspaceId
  next()
}

type Create = { sourceWalletId: string; targetWalletId: string; amount: string; currency: string; bizId?: string }
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

const succeed = (data: object) => ({
  version: '1.3.0',
  timestamp: Date.now(),
  success: true,
  code: '2000',
  message: 'SUCCESS',
  data,
})

const fail: ErrorRequestHandler = (error, _request, response, _next) => {
  if (!(error instanceof Failure)) console.error(error)
  const { status, code } = error instanceof Failure ? error : { status: 500, code: 'S001' }
  response
    .status(status)
    .json({ version: '1.3.0', timestamp: Date.now(), success: false, code, message: code, data: null })
}

const app = express()
app.use(express.raw({ type: 'application/json' }), authenticate)
app.post('/api/v1/transfer/command/create', async (request, response) => {
  response.json(succeed(await createTransfer(response.locals.workspaceId, JSON.parse(request.body))))
})
app.get('/api/v1/wallets/:id/balance', async (request, response) => {
  response.json(succeed(await readBalance(response.locals.workspaceId, request.params.id)))
})
app.get('/api/v1/transfer/query/orders', async (request, response) => {
  response.json(succeed(await readOrders(response.locals.workspaceId, request)))
})
app.get('/api/v1/transfer/query/orders/:bizId', async (request, response) => {
  response.json(succeed(await readOrder(response.locals.workspaceId, request.params.bizId)))
})
app.use(fail)
const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.once('disconnect', () => process.exit(0))
