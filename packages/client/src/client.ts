import { Events } from './events.ts'
import { Holds } from './holds.ts'
import { createRequest, type Request, type Send } from './request.ts'
import { readOptions, type WalletClientOptions } from './settings.ts'
import { Transfers } from './transfers.ts'
import { Wallets } from './wallets.ts'
import { Webhooks } from './webhooks.ts'

export type WalletClient = {
  wallets: Wallets
  transfers: Transfers
  holds: Holds
  events: Events
  webhooks: Webhooks
  /** Signs and sends a request to any endpoint, with retries. Returns the `data` of the response, its status and headers. */
  request: Request
}

/**
 * Creates a client of the public API for one API key. It keeps no connection of its own, and needs no closing.
 *
 * @throws TypeError if an option is invalid
 */
export function createWalletClient(options: WalletClientOptions): WalletClient {
  const request = createRequest(readOptions(options))
  const send: Send = async <Data>(...sent: Parameters<Request>) => (await request<Data>(...sent)).data
  return {
    wallets: new Wallets(send),
    transfers: new Transfers(send),
    holds: new Holds(send),
    events: new Events(send),
    webhooks: new Webhooks(send),
    request,
  }
}
