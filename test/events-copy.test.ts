/** Runs examples/events-copy as its users do, while the workspace changes and programs are killed. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseSeed, Random } from '../cli/processes/random.ts'
import { batchPath, call, createPath } from './setup/client.ts'
import { pauseAfter } from './setup/load.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

const script = fileURLToPath(new URL('../examples/events-copy/events_copy.py', import.meta.url))
const run = promisify(execFile)
const seed = chooseSeed()

let system: System
beforeAll(async () => {
  console.log(`events-copy: SEED=${seed}`)
  system = await startSystem({ cores: 2, gateways: 2 })
})
afterAll(() => system.stop())

function environment(): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env
  const { baseUrl, apiKey, apiSecret } = system
  return { PATH, HOME, PYTHONDONTWRITEBYTECODE: '1', BASE_URL: baseUrl, API_KEY: apiKey, API_SECRET: apiSecret }
}

test(`a copy made from events agrees with the service, whatever is killed (seed ${seed})`, async () => {
  const file = join(await makeTempDir('copy'), 'copy.db')
  const clients = new Clients(system, new Random(seed))
  const ports = system.cores.map(({ port }) => port)
  let follower = follow(file)
  clients.start(8)
  for (let round = 0; round < 4; round++) {
    const before = clients.done
    await until('commands succeed', () => clients.done > before + 60)
    await kill(follower)
    const port = ports[round % 2]!
    await system.cores.findLast(core => core.port === port)!.kill('SIGKILL')
    await system.startCore({ CORE_PORT: String(port) })
    follower = follow(file)
  }
  const before = clients.done
  await until('commands succeed again', () => clients.done > before + 60)
  await clients.stop()
  await kill(follower)
  // An expiry between the two checks would be an event that only the second one sees.
  await until('no hold expires soon', async () => {
    const { data } = (await call(system, 'GET', '/api/v1/hold/query/holds?status=OPEN&size=100')).body
    const isLong = ({ expiresAt, createdAt }: Record<'expiresAt' | 'createdAt', string>) =>
      Date.parse(expiresAt) - Date.parse(createdAt) > 2_000
    return data?.content.every(isLong)
  })

  const command = (name: string, copy = file) => run('python3', [script, '--file', copy, name], { env: environment() })
  const checked = await command('check')
  expect(checked.stdout).toMatch(/^position \d+: \d+ wallets, \d+ orders, \d+ holds, as in the service\n$/)
  expect([...clients.codes]).toEqual(expect.arrayContaining(['2000']))
  expect(clients.unexpected).toEqual([])

  // From the beginning, it comes to the same copy.
  const other = join(await makeTempDir('copy'), 'other.db')
  await command('rebuild', other)
  expect((await command('check', other)).stdout).toBe(checked.stdout)
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})

test('a copy that differs from the service is found out', async () => {
  const file = join(await makeTempDir('copy'), 'copy.db')
  const command = (name: string) => run('python3', [script, '--file', file, name], { env: environment() })
  await command('update')
  await edit(file, 'update wallet set balance = balance || 1')
  await expect(command('check')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^balance of wal_\w{26} is \S+ in the copy and \S+ in the service\.$/m),
  })
  // An event that the log does not have: history was replaced. The copy is made again.
  await edit(file, "update cursor set last_event_id = 'evt_other'")
  const checked = await command('check')
  expect(checked.stderr).toMatch(/restored from an earlier copy/)
  expect(checked.stdout).toMatch(/as in the service/)
})

async function edit(file: string, statement: string): Promise<void> {
  const program = 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(sys.argv[2]); db.commit()'
  await run('python3', ['-c', program, file, statement])
}

function follow(file: string): ChildProcess {
  return spawn('python3', [script, '--file', file, 'follow'], { env: environment(), stdio: 'ignore' })
}

async function kill(follower: ChildProcess): Promise<void> {
  const closed = once(follower, 'close')
  follower.kill('SIGKILL')
  await closed
}

/** Clients that transfer, hold, draw, release, reverse and batch at random. */
class Clients {
  /** How many commands succeeded. */
  done = 0
  readonly codes = new Set<string>()
  /** Answers that neither a rule nor a killed core explains. */
  readonly unexpected: string[] = []
  readonly #system: System
  readonly #random: Random
  readonly #holds: string[] = []
  readonly #transfers: string[] = []
  #isRunning = true
  #clients: Promise<void>[] = []

  constructor(system: System, random: Random) {
    this.#system = system
    this.#random = random
  }

  start(count: number): void {
    this.#clients = Array.from({ length: count }, async () => {
      while (this.#isRunning) await this.#send()
    })
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#clients)
  }

  async #send(): Promise<void> {
    const random = this.#random
    const bizId = randomUUID()
    const roll = random.int(100)
    if (roll < 25) await this.#post('/api/v1/hold/command/create', this.#hold(bizId))
    else if (roll < 35) await this.#post('/api/v1/hold/command/release', { holdId: this.#recent(this.#holds) })
    else if (roll < 50) await this.#post('/api/v1/transfer/command/reverse', this.#reversal(bizId))
    else if (roll < 70) await this.#post(batchPath, { transfers: this.#items() })
    else await this.#post(createPath, this.#transfer(bizId, random.chance(0.5)))
  }

  async #post(path: string, body: object): Promise<void> {
    const gateway = this.#random.pick(this.#system.gateways)
    const { code, data } = (await call({ ...this.#system, baseUrl: gateway.url }, 'POST', path, body)).body
    this.codes.add(code)
    if (code === '2000') this.done++
    // What a rule forbids, or a killed core leaves undone or unknown.
    else if (!/^(T00[1267]|H00[123]|S00[23])$/.test(code)) this.unexpected.push(`${code} to ${JSON.stringify(body)}`)
    if (data?.holdId && data.expiresAt) this.#holds.push(data.holdId)
    if (data?.transferId) this.#transfers.push(data.transferId)
    await pauseAfter(code)
  }

  #hold(bizId: string) {
    const expiresInSeconds = this.#random.pick([1, 2, 3600])
    return { walletId: this.#wallet(0), amount: this.#amount(), currency: 'USD', expiresInSeconds, bizId }
  }

  #transfer(bizId: string, draws: boolean) {
    const first = draws ? 0 : this.#random.int(2)
    const holdRemainder = this.#random.pick(['KEEP', 'RELEASE'])
    return {
      sourceWalletId: this.#wallet(first),
      targetWalletId: this.#wallet(1 - first),
      amount: this.#amount(),
      currency: 'USD',
      bizId,
      ...(draws && { holdId: this.#recent(this.#holds), holdRemainder }),
    }
  }

  #reversal(bizId: string) {
    return { reversesTransferId: this.#recent(this.#transfers), amount: this.#amount(), currency: 'USD', bizId }
  }

  #items() {
    const items: { bizId: string }[] = [this.#transfer(randomUUID(), false)]
    const names = items.map(({ bizId }) => bizId)
    if (this.#random.chance(0.5)) items.push(this.#transfer(randomUUID(), this.#random.chance(0.3)))
    if (this.#random.chance(0.5)) items.push({ ...this.#reversal(randomUUID()), reversesTransferId: names[0] } as never)
    return items
  }

  #recent(ids: string[]): string {
    return this.#random.pick(ids.length > 0 ? ids.slice(-5) : ['none'])
  }

  #wallet(at: number): string {
    return this.#system.wallets[at]!.walletId
  }

  #amount(): string {
    return `${this.#random.int(6)}.${1 + this.#random.int(9)}0`
  }
}
