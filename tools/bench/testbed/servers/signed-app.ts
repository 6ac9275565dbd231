/**
 * An Express program that makes the same checks of a signed request as the service (key, timestamp, nonce in Redis, HMAC over the
 * hash of the body), and answers as it does, so that the same load generator measures both.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import { createClient } from 'redis'

type Key = { apiKey: string; apiSecret: string; workspaceId: string }

/** An answer of another code than success. */
export class Failure extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

export type Create = {
  sourceWalletId: string
  targetWalletId: string
  amount: string
  currency: string
  bizId?: string
}

const { REDIS_URL, KEYS = '[]' } = process.env
const keys = new Map((JSON.parse(KEYS) as Key[]).map(key => [key.apiKey, key]))
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

export const succeed = (data: object) => ({
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

/** Serves signed requests until the benchmark disconnects. @param createTransfer makes a transfer, and returns its order */
export function serveSigned(
  createTransfer: (workspaceId: string, create: Create) => Promise<object>,
  addRoutes: (app: Express) => void = () => {},
): void {
  const app = express()
  app.use(express.raw({ type: 'application/json' }), authenticate)
  app.post('/api/v1/transfer/command/create', async (request, response) => {
    response.json(succeed(await createTransfer(response.locals.workspaceId, JSON.parse(request.body))))
  })
  addRoutes(app)
  app.use(fail)
  const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
  process.once('disconnect', () => process.exit(0))
}
