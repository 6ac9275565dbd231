import { createHmac, createSecretKey, hash, randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

/**
 * The load generator: a process that signs every request with a new nonce and keeps one request in flight per connection.
 * It uses plain sockets, which take less CPU time than an HTTP client.
 *
 * Its parent sends it one `LoadPlan` after the other. It warms up, measures, and answers each with a `LoadResult`.
 */
export type LoadPlan = {
  host: string
  /** Of the gateways, or of one other server. The connections use the next one each time that all signers have one. */
  ports: readonly number[]
  connections: number
  warmUpMs: number
  measureMs: number
  /** Each connection takes the next signer. */
  signers: readonly { apiKey: string; apiSecret: string; wallets: string[] }[]
  /**
   * `hot-transfer`: every transfer uses the first wallet of its workspace. `batch`: batches of transfers. `hold-capture`
   * and `transfer-reverse`: by turns, a hold and the transfer that captures it, or a transfer and its reversal. `get` is
   * signed, `plain` is not.
   */
  kind: 'transfer' | 'hot-transfer' | 'batch' | 'hold-capture' | 'transfer-reverse' | 'balance' | 'get' | 'plain'
  /** Path and query of `get` and `plain`. `@wallet@` stands for the first wallet of the signer. */
  target?: string
  /** Several targets, of which the connections take the next one each time that all signers have one. */
  targets?: readonly string[]
  /** Codes of failures that do not fail the benchmark. */
  allowedFailures?: readonly string[]
}

export type LoadResult = {
  perSecond: number
  /** Successful answers during the measurement, and all responses since the first request. */
  answered: number
  total: number
  /** Failures during the measurement by code. */
  failures: Record<string, number>
  latencyMs: { p50: number; p95: number; p99: number; max: number }
}

/** The transfers of a batch, the most that one may have. */
export const batchSize = 100

const emptyBodyHash = hash('sha256', '')

class Connection {
  readonly #plan: LoadPlan
  readonly #signer: LoadPlan['signers'][number]
  readonly #key
  readonly #target: string
  readonly #noncePrefix = randomBytes(9).toString('base64url')
  readonly #socket: Socket
  readonly #onAnswer: (latencyMs: number, code: string) => void
  #count = 0
  #sentAt = 0
  #received = ''
  isStopped = false

  constructor(plan: LoadPlan, index: number, onAnswer: (latencyMs: number, code: string) => void) {
    this.#plan = plan
    const { signers, ports, target = '', targets = [target] } = plan
    this.#signer = signers[index % signers.length]!
    const round = Math.floor(index / signers.length)
    const chosen = targets[round % targets.length]!
    this.#target = chosen.replace('@wallet@', this.#signer.wallets[0] ?? '')
    this.#key = createSecretKey(this.#signer.apiSecret, 'utf8')
    this.#onAnswer = onAnswer
    this.#socket = connect({ host: plan.host, port: ports[round % ports.length]!, noDelay: true }, () => this.#send())
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', chunk => this.#receive(String(chunk)))
    this.#socket.on('error', error => {
      if (!this.isStopped) throw error
    })
    this.#socket.on('close', () => {
      if (!this.isStopped) throw new Error('The server has closed a connection.')
    })
  }

  stop(): void {
    this.isStopped = true
    this.#socket.destroy()
  }

  #send(): void {
    const { wallets } = this.#signer
    const wallet = wallets[Math.floor(Math.random() * wallets.length)]!
    this.#sentAt = performance.now()
    const { kind } = this.#plan
    const target = this.#target
    if (kind === 'plain') this.#socket.write(`GET ${target} HTTP/1.1\r\nHost: bench\r\n\r\n`)
    else if (kind === 'get') this.#socket.write(this.#request('GET', target, ''))
    else if (kind === 'balance') this.#socket.write(this.#request('GET', `/api/v1/wallets/${wallet}/balance`, ''))
    else this.#socket.write(this.#request('POST', ...this.#command()))
  }

  /** The path and the body of the next command. */
  #command(): [string, string] {
    const create = '/api/v1/transfer/command/create'
    const isSecond = this.#count % 2 === 1
    // The name of this request and the one before it.
    const pair = `${this.#noncePrefix.replaceAll(/[-_]/g, '.')}${this.#count >> 1}`
    switch (this.#plan.kind) {
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
    const isHot = this.#plan.kind === 'hot-transfer'
    const first = isHot ? 0 : Math.floor(Math.random() * wallets.length)
    const second = isHot ? other : (first + other) % wallets.length
    const [source, target] = this.#count % 2 === 0 ? [first, second] : [second, first]
    return `{"sourceWalletId":"${wallets[source]}","targetWalletId":"${wallets[target]}","amount":"0.01","currency":"USD"${more}}`
  }

  #request(method: string, target: string, body: string): string {
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

  #receive(chunk: string): void {
    this.#received += chunk
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = /content-length: (\d+)/i.exec(this.#received)
    if (!length || this.#received.length < end + 4 + Number(length[1])) return
    const code = this.#plan.kind === 'plain' ? '2000' : (/"code":"([^"]+)"/.exec(this.#received)?.[1] ?? 'none')
    this.#received = ''
    this.#onAnswer(performance.now() - this.#sentAt, code)
    if (!this.isStopped) this.#send()
  }
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  const latencies: number[] = []
  const failures: Record<string, number> = {}
  let isMeasuring = false
  let total = 0
  const connections = Array.from(
    { length: plan.connections },
    (_, index) =>
      new Connection(plan, index, (latencyMs, code) => {
        total++
        if (!isMeasuring) return
        if (code === '2000') latencies.push(latencyMs)
        else failures[code] = (failures[code] ?? 0) + 1
      }),
  )
  await new Promise(resolve => setTimeout(resolve, plan.warmUpMs))
  const startedAt = performance.now()
  isMeasuring = true
  await new Promise(resolve => setTimeout(resolve, plan.measureMs))
  // Until the first response, if it takes longer than the measurement.
  while (latencies.length === 0 && Object.keys(failures).length === 0) await new Promise(setImmediate)
  isMeasuring = false
  const seconds = (performance.now() - startedAt) / 1000
  for (const connection of connections) connection.stop()
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
  return {
    perSecond: latencies.length / seconds,
    answered: latencies.length,
    total,
    failures,
    latencyMs: { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) },
  }
}

process.on('message', async plan => process.send?.(await run(plan as LoadPlan)))
