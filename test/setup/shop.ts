/** Runs examples/shop as its users do, and asks it for what customers and staff ask for. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { pickFreePort } from '../../cli/processes/ports.ts'
import type { Credentials } from './client.ts'
import { until } from './until.ts'

export type Order = {
  orderId: string
  customerId: string
  amount: string
  status: string
  captured: string
  refunded: string
  steps: { bizId: string; kind: string; amount: string; state: string; code: string | null }[]
}
export type Customer = { customerId: string; walletId: string | null; balance: string }
type Answer<Body> = { status: number; body: Body }

const script = (name: string) => fileURLToPath(new URL(`../../examples/shop/${name}.ts`, import.meta.url))

export class Shop {
  readonly url: string
  readonly #environment: NodeJS.ProcessEnv
  #process: ChildProcess | undefined
  #output = ''

  private constructor(environment: NodeJS.ProcessEnv, port: number) {
    this.#environment = { ...environment, SHOP_PORT: String(port) }
    this.url = `http://127.0.0.1:${port}`
  }

  /** A shop that is not started yet. @param file its database */
  static async create({ baseUrl, apiKey, apiSecret }: Credentials, file: string): Promise<Shop> {
    const { PATH, NODE_COMPILE_CACHE } = process.env
    const credentials = { BASE_URL: baseUrl, API_KEY: apiKey, API_SECRET: apiSecret }
    return new Shop({ PATH, NODE_COMPILE_CACHE, ...credentials, SHOP_DATABASE: file }, await pickFreePort())
  }

  /** Resolves when it has caught up with the event log. */
  async start(): Promise<void> {
    this.#output = ''
    const child = spawn(process.execPath, [script('shop')], { env: this.#environment })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', text => {
        this.#output += text
      })
    this.#process = child
    await until('the shop is open', () => {
      if (child.exitCode !== null) throw new Error(`The shop has exited:\n${this.#output}`)
      return this.#output.includes('The shop is open')
    })
  }

  async kill(): Promise<void> {
    const child = this.#process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  /** Runs reconcile.ts. */
  reconcile(from: Date, to: Date): Promise<{ exitCode: number; output: string }> {
    const { promise, resolve } = Promise.withResolvers<{ exitCode: number; output: string }>()
    const command = [script('reconcile'), from.toISOString(), to.toISOString()]
    execFile(process.execPath, command, { env: this.#environment }, (error, stdout, stderr) =>
      resolve({ exitCode: Number(error?.code ?? 0), output: stdout + stderr }),
    )
    return promise
  }

  get<Body>(path: string): Promise<Answer<Body>> {
    return this.#ask('GET', path)
  }

  put<Body>(path: string, body: object = {}): Promise<Answer<Body>> {
    return this.#ask('PUT', path, body)
  }

  /** Repeats the request while the shop does not run: whoever asks has chosen the ID. */
  async #ask<Body>(method: string, path: string, body?: object): Promise<Answer<Body>> {
    return until(`${method} ${path}`, async () => {
      const response = await fetch(this.url + path, {
        method,
        ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
      }).catch(() => undefined)
      const text = await response?.text().catch(() => undefined)
      return response && text !== undefined && { status: response.status, body: JSON.parse(text) as Body }
    })
  }
}
