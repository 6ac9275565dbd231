/**
 * A restore to a time, by the commands of docs/point-in-time.md: what the database has afterwards, and what its clients, webhooks,
 * keys, nonces and receipts see.
 */
import { randomUUID } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createWalletClient, HistoryReplacedError } from '@workspace-wallet/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Postgres, startPostgres } from '../cli/processes/postgres.ts'
import { chooseSeed, Random } from '../cli/processes/random.ts'
import { migrate } from '../services/core/src/database/migrate.ts'
import { adminEnvironment, root, runAdmin } from './setup/admin-command.ts'
import { call, createPath, signedHeaders } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { type FaultProxy, startFaultProxy } from './setup/fault-proxy.ts'
import { type ReceivedEvent, type Receiver, startReceiver } from './setup/receiver.ts'
import { Shell } from './setup/shell.ts'
import { ShownOutputs } from './setup/shown-output.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'
import { webhooksOf } from './setup/webhooks.ts'
import { createKey } from './setup/workspaces.ts'

// The environment variable SEED repeats the amounts and times of a run.
const seed = chooseSeed()
const random = new Random(seed)
const superuserPassword = 'superuser'
const minorUnits = 100

let directory: string
let archive: string
let primary: Postgres
let restored: Postgres | undefined
let toDatabase: FaultProxy
let system: System
let receiver: Receiver
let shell: Shell
const outputs = new ShownOutputs()

beforeAll(async () => {
  console.log(`point in time: SEED=${seed}`)
  directory = await makeTempDir('point-in-time')
  await chmod(directory, 0o755)
  archive = join(directory, 'archive')
  await mkdir(archive)
  // PostgreSQL runs as another user if the tests run as root.
  await chmod(archive, 0o777)
  for (const name of ['node_modules', 'cli', 'services', 'packages'])
    await symlink(join(root, name), join(directory, name))
  primary = await startPostgres({
    dataDir: join(directory, 'primary'),
    port: 0,
    durable: false,
    superuserPassword,
    settings: {
      archive_mode: 'on',
      archive_library: 'basic_archive',
      'basic_archive.archive_directory': archive,
    },
  })
  await execute(primary.url('postgres'), 'create database wallet')
  const urls = (through: (url: string) => string) => ({
    ownerUrl: through(primary.url('wallet')),
    serviceUrl: through(primary.url('wallet', 'wallet_service', 'service')),
  })
  toDatabase = await startFaultProxy(primary.port)
  const direct = urls(url => url)
  await migrate(direct.ownerUrl, direct.serviceUrl)
  system = await startSystem({ database: urls(url => toDatabase.through(url)) })
  await system.startCourier()
  receiver = await startReceiver()
  shell = new Shell('bash', {
    cwd: directory,
    env: {
      ...adminEnvironment(system),
      PATH: `${join(process.execPath, '..')}:${process.env.PATH}`,
      BACKUP_DATABASE_URL: primary.url('postgres'),
    },
  })
}, 120_000)
afterAll(async () => {
  shell?.end()
  await system?.stop()
  await receiver?.stop()
  toDatabase?.cut()
  await Promise.all([primary?.stop(), restored?.stop()])
})

/** The commands of the chapter, in order, each with the output that the page shows. */
async function readWalk(): Promise<{ command: string; output: string }[]> {
  const page = await readFile(join(root, 'docs/point-in-time.md'), 'utf8')
  const chapter = page.slice(page.indexOf('\n## Restore\n'), page.indexOf('\n## Restore the containers\n'))
  return [...chapter.matchAll(/^ *```console\n(.*?)^ *```$/gms)].flatMap(([, block]) =>
    block!
      .replaceAll(/^ +/gm, '')
      .split(/^\$ /m)
      .slice(1)
      .map(step => ({ command: step.slice(0, step.indexOf('\n')), output: step.slice(step.indexOf('\n') + 1) })),
  )
}

/** Runs a command as a reader does. npm takes longer than the command. */
async function follow({ command, output }: { command: string; output: string }): Promise<void> {
  const direct = command.replaceAll(/\bnpm run --silent (\w+) --/g, (_, name) => `node cli/${name}.ts`)
  outputs.expectSame(await shell.run(direct), output, `docs/point-in-time.md\n$ ${command}`)
}

type Sent = { bizId: string; body: object; sentMs: number; answeredMs: number; transferId: string }

/** Transfers of random amounts in both directions, from several clients, until `isEnough`. */
async function makeTraffic(sent: Sent[], isEnough: () => boolean): Promise<void> {
  const customer = async () => {
    while (!isEnough()) {
      const [source, target] = random.int(2) === 0 ? [0, 1] : [1, 0]
      const body = {
        sourceWalletId: system.wallets[source!]!.walletId,
        targetWalletId: system.wallets[target!]!.walletId,
        amount: `0.${String(1 + random.int(minorUnits - 1)).padStart(2, '0')}`,
        currency: 'USD',
        bizId: `pitr-${randomUUID()}`,
      }
      const sentMs = Date.now()
      const { body: answer } = await call(system, 'POST', createPath, body)
      expect(answer.code).toBe('2000')
      sent.push({ bizId: body.bizId, body, sentMs, answeredMs: Date.now(), transferId: answer.data.transferId })
    }
  }
  await Promise.all(Array.from({ length: 6 }, customer))
}

type Row = {
  bizId: string | null
  position: string
  source: string
  target: string
  sourceAfter: string
  targetAfter: string
}

const rowsOf = (url: string) =>
  query(
    url,
    `select biz_id as "bizId", position, id, amount, created_at, source_mac, target_mac, source_wallet_id as source,
       target_wallet_id as target, source_balance as "sourceAfter", target_balance as "targetAfter"
     from transfer order by position`,
  ) as unknown as Promise<Row[]>

/** The balances of wallets after these transfers. */
function balancesAfter(rows: Row[]): Record<string, string> {
  const balances: Record<string, string> = {}
  for (const { source, target, sourceAfter, targetAfter } of rows)
    Object.assign(balances, { [source]: sourceAfter, [target]: targetAfter })
  return balances
}

/** That a restored database is the original one as of a time. Returns how many transfers it has. */
async function expectAsOf(url: string, timeMs: number, original: Row[], sent: Sent[]): Promise<number> {
  const rows = await rowsOf(url)
  expect(rows).toEqual(original.slice(0, rows.length))
  const found = new Set(rows.map(({ bizId }) => bizId))
  for (const { bizId, sentMs, answeredMs } of sent) {
    if (answeredMs <= timeMs) expect(found.has(bizId), `answered before: ${bizId}`).toBe(true)
    if (sentMs > timeMs) expect(found.has(bizId), `sent after: ${bizId}`).toBe(false)
  }
  const wallets = await query(url, 'select id, balance from wallet')
  const balances = balancesAfter(rows)
  for (const { id, balance } of wallets)
    expect(Number(balance), `wallet ${id}`).toBe(Number(balances[id as string] ?? 0))
  return rows.length
}

const more = (sent: Sent[], count: number) => {
  const enough = sent.length + count
  return () => sent.length >= enough
}

/** That positions until the restored end of the log come again with the same event, if at all, and later ones with another. */
async function expectWebhook(before: ReceivedEvent[], restoredHead: number, head: number): Promise<void> {
  const idAt = new Map(before.map(({ position, eventId }) => [position, eventId]))
  const again = () => receiver.received.slice(before.length).map(({ event }) => event)
  const isOther = (event: ReceivedEvent) => event.eventId !== idAt.get(event.position)
  await until('new events are delivered', () => again().some(event => event.position === head && isOther(event)))
  const known = new Set(before.map(({ eventId }) => eventId))
  for (const event of again())
    if (known.has(event.eventId)) expect(event.position).toBeLessThanOrEqual(restoredHead)
    else expect(event.position).toBeGreaterThan(restoredHead)
}

const codeOf = async (method: string, path: string, body?: object) => (await call(system, method, path, body)).body.code

test(`the walk restores to a time, and everybody notices as documented (seed ${seed})`, async () => {
  const [take, checkpoint, audit, events, restore, verify, ...rest] = await readWalk()
  expect(rest).toEqual([])
  const webhooks = webhooksOf(system)
  await until('the gateway serves', async () => (await codeOf('GET', '/api/v1/wallets')) === '2000')
  const key = await createKey(system)
  const webhookId = await webhooks.create(receiver)
  await follow(take!)

  // Half of the transfers before the checkpoint. The time is in the middle of the others, while they are made.
  const sent: Sent[] = []
  await makeTraffic(sent, () => sent.length >= 20)
  await follow(checkpoint!)
  const first = 25 + random.int(30)
  const times: number[] = []
  await makeTraffic(sent, () => {
    if (times.length === 0 && sent.length >= first) times.push(Date.now())
    if (times.length === 1 && sent.length >= first + 30) times.push(Date.now())
    return sent.length >= 130
  })
  const [timeMs, laterMs] = times as [number, number]

  // What happens after the time.
  const lost = sent.find(({ sentMs }) => sentMs > timeMs)!
  const kept = sent[0]!
  await system.admin.apiKeys.disable.mutate({ apiKey: key.apiKey })
  await until('the key is disabled', async () => (await call(key, 'GET', '/api/v1/wallets')).body.code === 'GA2021')
  const receipt = await call(system, 'GET', `/api/v1/transfer/query/orders/${lost.bizId}/receipt`)
  await writeFile(join(directory, 'lost.receipt'), receipt.body.data.receipt)
  expect((await runAdmin(system, `ledger checkpoint --out ${directory}/after.checkpoint`)).exitCode).toBe(0)
  const client = createWalletClient(system)
  const head = await client.events.read('head')
  await until('all events are delivered', async () => (await webhooks.get(webhookId)).position === head.last)
  const [captured, body] = [
    '/api/v1/transfer/command/create',
    JSON.stringify({ ...lost.body, bizId: `pitr-${randomUUID()}` }),
  ]
  const headers = await signedHeaders(system, 'POST', captured, body)
  const replay = async () =>
    (await (await fetch(system.baseUrl + captured, { method: 'POST', headers, body })).json()) as { code: string }
  expect((await replay()).code).toBe('2000')
  await until('it is delivered', async () => (await webhooks.get(webhookId)).position > head.last)
  const delivered = receiver.received.map(({ event }) => event)

  await shell.run(`WORKSPACE=${system.workspaceId} POSITION=1 ARCHIVE=${archive}`)
  await shell.run(`TIME=${new Date(timeMs).toISOString()}`)
  await follow(audit!)
  await follow(events!)
  expect(await readFile(join(directory, 'lost-audit.json'), 'utf8')).toContain('key.disable')
  expect(await readFile(join(directory, 'lost-events.json'), 'utf8')).toContain(lost.bizId)
  const original = await rowsOf(primary.url('wallet'))
  const [last] = await query(primary.url('wallet'), 'select pg_walfile_name(pg_switch_wal()) as segment')
  await until('the log is archived', async () => (await readdir(archive)).includes(last!.segment as string))

  // Any later time gives more.
  const laterCommand = restore!.command
    .replace(' restored ', ' later ')
    .replace('$TIME', new Date(laterMs).toISOString())
  await shell.run(laterCommand.replace('npm run --silent backup --', 'node cli/backup.ts'))
  const later = await startPostgres({ dataDir: join(directory, 'later'), port: 0, durable: false, superuserPassword })
  const laterCount = await expectAsOf(later.url('wallet'), laterMs, original, sent)
  await later.stop()

  await follow(restore!)
  restored = await startPostgres({ dataDir: join(directory, 'restored'), port: 0, durable: false, superuserPassword })
  const count = await expectAsOf(restored.url('wallet'), timeMs, original, sent)
  expect(count).toBeLessThan(laterCount)
  expect(laterCount).toBeLessThan(original.length)
  toDatabase.cut()
  toDatabase.pointTo(restored.port)
  await toDatabase.restore()

  // A core that was not stopped refuses the database. The one that is started instead accepts it.
  const [core] = system.cores.splice(0)
  await until('core refuses it', () => core!.output().includes('the database is refused'))
  await core!.stop()
  await system.startCore({ CORE_PORT: new URL(core!.url).port })
  await follow(verify!)
  const against = await runAdmin(system, `ledger verify --against ${directory}/after.checkpoint`)
  expect(against.exitCode).toBe(1)
  for (const { walletId } of system.wallets.slice(0, 2)) expect(against.stdout).toContain(walletId)

  // A disabled key is back. The nonce of an accepted request is not forgotten.
  await until('the key works again', async () => (await call(key, 'GET', '/api/v1/wallets')).body.code === '2000')
  expect((await replay()).code).toBe('GA2013')

  const check = await runAdmin(system, `receipt check --file ${directory}/lost.receipt`)
  expect([check.exitCode, check.stdout]).toEqual([1, expect.stringContaining('the ledger has no such transfer')])

  // The cursor is after the end of the log, and later at a position that has another event.
  const follower = () =>
    client.events.follow({ after: head.last, afterEventId: head.lastEventId, untilEnd: true }).next()
  expect((await call(system, 'GET', `/api/v1/event/query/events/${head.last}`)).body.code).toBe('E001')
  await expect(follower()).rejects.toThrow(HistoryReplacedError)

  const restoredHead = (await client.events.read('head')).last
  const again = await call(system, 'POST', createPath, lost.body)
  expect(again.body.code).toBe('2000')
  expect(again.body.data.transferId).not.toBe(lost.transferId)
  expect((await call(system, 'POST', createPath, kept.body)).body.data.transferId).toBe(kept.transferId)
  while ((await client.events.read('head')).last < head.last) await makeTraffic(sent, more(sent, 1))
  expect((await call(system, 'GET', `/api/v1/event/query/events/${head.last}`)).body.data.afterEventId).not.toBe(
    head.lastEventId,
  )
  await expect(follower()).rejects.toThrow(HistoryReplacedError)

  await expectWebhook(delivered, restoredHead, head.last)
  expect((await runAdmin(system, 'ledger verify')).exitCode).toBe(0)
  await webhooks.close()
}, 240_000)
