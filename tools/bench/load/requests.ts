import { createHmac, createSecretKey, hash, randomBytes } from 'node:crypto'
import type { LoadPlan } from './plan.ts'

/** The transfers of a batch, the most that one may have. */
export const batchSize = 100

const emptyBodyHash = hash('sha256', '')

/** The requests of one connection, each with a new nonce. */
export class Requests {
  readonly #kind: LoadPlan['kind']
  readonly #signer: LoadPlan['signers'][number]
  readonly #key
  readonly #target: string
  readonly #noncePrefix = randomBytes(9).toString('base64url')
  #count = 0

  /** @param index of the connection */
  constructor({ signers, kind, target = '', targets = [target] }: LoadPlan, index: number) {
    this.#kind = kind
    this.#signer = signers[index % signers.length]!
    const chosen = targets[Math.floor(index / signers.length) % targets.length]!
    this.#target = chosen.replace('@wallet@', this.#signer.wallets[0] ?? '')
    this.#key = createSecretKey(this.#signer.apiSecret, 'utf8')
  }

  /** The next request as HTTP/1.1. Its timestamp is the current time. */
  next(): string {
    const { wallets } = this.#signer
    const wallet = wallets[Math.floor(Math.random() * wallets.length)]!
    if (this.#kind === 'plain') return `GET ${this.#target} HTTP/1.1\r\nHost: bench\r\n\r\n`
    if (this.#kind === 'get') return this.#sign('GET', this.#target, '')
    if (this.#kind === 'balance') return this.#sign('GET', `/api/v1/wallets/${wallet}/balance`, '')
    return this.#sign('POST', ...this.#command())
  }

  /** The path and the body of the next command. */
  #command(): [string, string] {
    const create = '/api/v1/transfer/command/create'
    const isSecond = this.#count % 2 === 1
    // The name of this request and the one before it.
    const pair = `${this.#noncePrefix.replaceAll(/[-_]/g, '.')}${this.#count >> 1}`
    switch (this.#kind) {
      case 'batch': {
        const items = Array.from({ length: batchSize }, (_, at) =>
          this.#transferBody(`,"bizId":"b${pair}:${+isSecond}:${at}"`),
        )
        return ['/api/v1/transfer/command/batch', `{"transfers":[${items.join(',')}]}`]
      }
      case 'hold-capture': {
        const [first, second] = this.#signer.wallets
        const amount = `"amount":"0.01","currency":"USD"`
        if (isSecond)
          return [create, `{"sourceWalletId":"${first}","targetWalletId":"${second}",${amount},"holdId":"h${pair}"}`]
        return [
          '/api/v1/hold/command/create',
          `{"walletId":"${first}",${amount},"expiresInSeconds":3600,"bizId":"h${pair}"}`,
        ]
      }
      case 'transfer-reverse': {
        if (!isSecond) return [create, this.#transferBody(`,"bizId":"o${pair}"`)]
        const original = `"reversesTransferId":"o${pair}","amount":"0.01","currency":"USD"`
        return ['/api/v1/transfer/command/reverse', `{${original},"bizId":"r${pair}"}`]
      }
      default:
        return [create, this.#transferBody()]
    }
  }

  #transferBody(more = ''): string {
    const { wallets } = this.#signer
    const other = 1 + Math.floor(Math.random() * (wallets.length - 1))
    const isHot = this.#kind === 'hot-transfer'
    const first = isHot ? 0 : Math.floor(Math.random() * wallets.length)
    const second = isHot ? other : (first + other) % wallets.length
    const [source, target] = this.#count % 2 === 0 ? [first, second] : [second, first]
    return `{"sourceWalletId":"${wallets[source]}","targetWalletId":"${wallets[target]}","amount":"0.01","currency":"USD"${more}}`
  }

  #sign(method: string, target: string, body: string): string {
    const path = target.split('?', 1)[0]
    const timestamp = Math.floor(Date.now() / 1000)
    const nonce = this.#noncePrefix + this.#count++
    // Signed synchronously, and not by packages/client: Web Crypto takes 40 µs of CPU time per request instead of 3.
    const bodyHash = body === '' ? emptyBodyHash : hash('sha256', body)
    const message = `${method}\n${path}\n${timestamp}\n${nonce}\n${bodyHash}`
    const signature = createHmac('sha256', this.#key).update(message).digest('base64')
    const type = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    return `${method} ${target} HTTP/1.1\r\nHost: bench\r\nX-Api-Key: ${this.#signer.apiKey}\r\nX-Timestamp: ${timestamp}\r\nX-Nonce: ${nonce}\r\nX-Signature: ${signature}\r\n${type}\r\n${body}`
  }
}
