/** The shop: `node examples/shop/shop.ts`. README.md says how to run it, and what to look at. */
import { setTimeout as pause } from 'node:timers/promises'
import {
  createWalletClient,
  type ReceiptKeys,
  RequestError,
  verifyReceipt,
  WebhookVerificationError,
} from '@workspace-wallet/client'
import express, { type ErrorRequestHandler, type Response } from 'express'
import { Books } from './books.ts'
import { Commands } from './commands.ts'
import { Database } from './database.ts'
import { Orders, Rejection } from './orders.ts'
import { WalletEvents } from './wallet-events.ts'

const { BASE_URL: baseUrl = '', API_KEY: apiKey = '', API_SECRET: apiSecret = '' } = process.env
const { SHOP_DATABASE = 'shop.db', SHOP_PORT = '4000' } = process.env
const { SHOP_URL = `http://127.0.0.1:${SHOP_PORT}` } = process.env

const client = createWalletClient({ baseUrl, apiKey, apiSecret })
const database = new Database(SHOP_DATABASE)
const orders = new Orders(database)
const commands = new Commands(database, client)
const events = new WalletEvents(database, client, new Books(database))
const app = express()

// Before the parser of JSON: the signature covers the bytes of the body.
app.post('/wallet-events', express.raw({ type: 'application/json', limit: '1mb' }), async (request, response) => {
  await events.receive(request.headers, request.body)
  response.sendStatus(204)
})

app.use(express.json())
for (const name of ['customerId', 'orderId', 'shipment', 'refund'])
  app.param(name, (_request, _response, next, value) => {
    const form = name.endsWith('Id') ? /^[A-Za-z0-9-]{1,36}$/ : /^[1-9]\d?$/
    next(form.test(value) ? undefined : new Rejection(404, `${name} must match ${form}.`))
  })

// Clients choose the IDs, so that each request can be repeated.
app.put('/customers/:customerId', ({ params, body = {} }, response) => {
  orders.addCustomer(params.customerId, body.name)
  accept(response, orders.customer(params.customerId))
})
app.put('/orders/:orderId', ({ params, body = {} }, response) => {
  orders.place(params.orderId, body.customerId, body.amount)
  accept(response, orders.order(params.orderId))
})
app.put('/orders/:orderId/shipments/:shipment', ({ params, body = {} }, response) => {
  orders.ship(params.orderId, params.shipment, body.amount)
  accept(response, orders.order(params.orderId))
})
app.put('/orders/:orderId/shipments/:shipment/refunds/:refund', ({ params, body = {} }, response) => {
  orders.refund(params.orderId, params.shipment, params.refund, body.amount)
  accept(response, orders.order(params.orderId))
})
app.put('/orders/:orderId/cancellation', ({ params }, response) => {
  orders.cancel(params.orderId)
  accept(response, orders.order(params.orderId))
})

app.get('/customers/:customerId', ({ params }, response) => {
  response.json(orders.customer(params.customerId))
})
app.get('/orders/:orderId', ({ params }, response) => {
  response.json(orders.order(params.orderId))
})

/** The receipt of a shipment's payment, for its customer: what it says, and the text that anybody can verify. */
app.get('/orders/:orderId/shipments/:shipment/receipt', async ({ params }, response) => {
  const receipt = await client.transfers.receipt(orders.paidShipment(params.orderId, params.shipment))
  const keys = (await (await fetch(`${baseUrl}/.well-known/jwks.json`)).json()) as ReceiptKeys
  response.json({ claims: await verifyReceipt(receipt, keys), receipt })
})

app.use(({ method, path }) => {
  throw new Rejection(404, `There is no ${method} ${path}: README.md shows the requests.`)
})

/** The command is stored. Its effects come with the events. */
function accept(response: Response, record: object): void {
  commands.send()
  response.status(202).json(record)
}

const answerError: ErrorRequestHandler = (error, _request, response, _next) => {
  const status = statusOf(error)
  if (status >= 500) console.error(error)
  response.status(status).json({ error: status === 500 ? 'The shop has failed.' : error.message })
}
app.use(answerError)

/** Express and its parsers put a status on their errors, and so does Rejection. */
function statusOf(error: Error & { status?: number }): number {
  if (error instanceof RangeError) return 400
  if (error instanceof WebhookVerificationError) return 401
  if (error instanceof RequestError) return 503
  return error.status ?? 500
}

app.listen(Number(SHOP_PORT), '127.0.0.1', async () => {
  orders.openShop()
  commands.send()
  for (let isOpen = false; !isOpen; )
    try {
      await events.catchUp()
      await events.connect(`${SHOP_URL}/wallet-events`)
      isOpen = true
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      console.error(String(error))
      await pause(1_000)
    }
  console.log(`The shop is open: ${SHOP_URL}`)
})
