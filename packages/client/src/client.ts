import { Events } from './events.ts'
import { Holds } from './holds.ts'
import { createRequest, type Request } from './request.ts'
import { readOptions, type WalletClientOptions } from './settings.ts'
import { Transfers } from './transfers.ts'
import { Wallets } from './wallets.ts'

export type WalletClient = {
  wallets: Wallets
  transfers: Transfers
  holds: Holds
  events: Events
  /** Signs and sends a request to any endpoint, with retries. Returns `data` of the answer, its status and headers. */
  request: Request
}

/**
 * Creates a client of the public API for one API key. It keeps no connection of its own, and needs no closing.
 *
 * @throws TypeError if an option is invalid
 */
export function createWalletClient(options: WalletClientOptions): WalletClient {
  const request = createRequest(readOptions(options))
  return {
    wallets: new Wallets(request),
    transfers: new Transfers(request),
    holds: new Holds(request),
    events: new Events(request),
    request,
  }
}
