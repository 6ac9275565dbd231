import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { mountSmallDisk } from './setup/small-disk.ts'
import { type System, type SystemOptions, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

/** Whatever becomes of a log, its program serves, counts what was lost, and ends when it is told to. */

const cleanUp: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const each of cleanUp.splice(0).toReversed()) await each()
})

async function start(options: SystemOptions = {}): Promise<System> {
  const environment = { LOG_LEVEL: 'debug' }
  const system = await startSystem({ coreEnvironment: environment, gatewayEnvironment: environment, ...options })
  cleanUp.push(() => system.stop())
  return system
}

/** More lines than a pipe and a socket take. */
async function makeLines(system: System, requests = 1_500): Promise<void> {
  const path = `/api/v1/wallets/${system.wallets[0]!.walletId}/balance`
  for (let at = 0; at < requests; at += 100)
    await Promise.all(Array.from({ length: 100 }, () => call(system, 'GET', path)))
}

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

async function linesLost(system: System): Promise<{ gateway: number; core: number }> {
  return {
    gateway: await metric(system.gateways[0]!.internalUrl, 'gateway_log_lines_lost_total'),
    core: await metric(system.cores[0]!.url, 'core_log_lines_lost_total'),
  }
}

async function expectService(system: System): Promise<void> {
  const [source, target] = system.wallets
  const order = { sourceWalletId: source!.walletId, targetWalletId: target!.walletId, amount: '0.01', currency: 'USD' }
  expect((await call(system, 'POST', createPath, order)).body.code).toBe('2000')
  for (const { url } of [...system.gateways, ...system.cores]) expect((await fetch(`${url}/healthz`)).status).toBe(200)
}

/** By SIGTERM, in order: its supervisor need not kill it. */
async function expectStop({ gateways, cores }: System): Promise<void> {
  for (const program of [...gateways, ...cores]) expect(await program.stop()).toBe(0)
}

test('a reader that is gone', async () => {
  const system = await start()
  for (const { process } of [...system.gateways, ...system.cores]) process.stdout!.destroy()
  await makeLines(system, 100)
  await until('lines are lost', async () => {
    await expectService(system)
    const { gateway, core } = await linesLost(system)
    return gateway > 0 && core > 0
  })
  await expectStop(system)
})

test('a reader that reads nothing', async () => {
  const system = await start()
  for (const { process } of [...system.gateways, ...system.cores]) process.stdout!.pause()
  await makeLines(system)
  await expectService(system)
  await expectStop(system)
})

test('a reader that reads nothing for a while gets everything that fits in memory', async () => {
  const system = await start({ cores: 1 })
  const [gateway] = system.gateways
  gateway!.process.stdout!.pause()
  await makeLines(system)
  gateway!.process.stdout!.resume()
  const last = await call(system, 'GET', '/api/v1/wallets')
  await until('the last line', () => gateway!.output().includes(last.headers.get('x-request-id')!))
  expect(gateway!.output().match(/a request was answered/g)!.length).toBe(1_501)
  expect(await linesLost(system)).toEqual({ gateway: 0, core: 0 })
})

test('a full device', async () => {
  const full = await open('/dev/full', 'w')
  cleanUp.push(() => full.close())
  const system = await start({ stdout: full.fd })
  await makeLines(system, 100)
  await until('lines are lost', async () => {
    await expectService(system)
    const { gateway, core } = await linesLost(system)
    return gateway > 0 && core > 0
  })
  await expectStop(system)
})

test('a disk that is full for a while: afterwards a line says how many were lost', async () => {
  const disk = await mountSmallDisk()
  if (!disk) return console.log('disk full: nothing may be mounted here, the device that is full has to do')
  cleanUp.push(() => disk.unmount())
  const path = join(disk.path, 'programs.log')
  const file = await open(path, 'a')
  cleanUp.push(() => file.close())
  const system = await start({ stdout: file.fd })
  await disk.fill()
  await makeLines(system, 300)
  await until('lines are lost', async () => {
    await expectService(system)
    const { gateway, core } = await linesLost(system)
    return gateway > 0 && core > 0
  })
  await disk.empty()
  const reports = await until('both say so', async () => {
    const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1)
    const found = lines.filter(line => line.includes('lines were lost')).map(line => JSON.parse(line))
    return new Set(found.map(({ service }) => service)).size === 2 && found
  })
  const lost = await linesLost(system)
  const said = (service: string) =>
    reports.filter(line => line.service === service).reduce((sum, line) => sum + line.lost, 0)
  expect({ gateway: said('gateway'), core: said('core') }).toEqual(lost)
  expect(reports[0]).toMatchObject({ level: 50, code: 'ENOSPC', msg: expect.stringContaining('the disk is full') })
  await expectStop(system)
})

/** A program with nothing but a log, told by messages what to do with it. */
async function startWriter(stdio: 'pipe' | number): Promise<ChildProcess> {
  const script = join(await makeTempDir('writer'), 'writer.ts')
  const runtime = join(import.meta.dirname, '../packages/runtime/src/log-output.ts')
  await writeFile(
    script,
    `import { LogOutput } from ${JSON.stringify(runtime)}
     const output = new LogOutput(1, loss => JSON.stringify(loss) + '\\n')
     let at = 0
     process.on('message', ({ lines, exit }) => {
       for (const end = at + (lines ?? 0); at < end; at++) output.write(JSON.stringify({ at, text: 'x'.repeat(200) }) + '\\n')
       if (exit) process.exit(7)
       process.send({ at, lost: output.lost })
     })
     process.on('disconnect', () => process.exit(0))`,
  )
  const child = fork(script, [], { stdio: ['ignore', stdio, 'inherit', 'ipc'] })
  cleanUp.push(async () => child.kill('SIGKILL'))
  return child
}

async function ask(child: ChildProcess, message: object): Promise<{ at: number; lost: number }> {
  const answer = once(child, 'message')
  child.send(message)
  return (await answer)[0]
}

test('past the memory that it may take the oldest lines are lost, each of them counted', async () => {
  const writer = await startWriter('pipe')
  let text = ''
  writer.stdout!.pause()
  await ask(writer, { lines: 1_000 })
  const { lost } = await ask(writer, { lines: 60_000 })
  expect(lost).toBeGreaterThan(30_000)
  writer.stdout!.on('data', chunk => (text += chunk)).resume()
  await until('the last line', () => text.includes('"at":60999,'))
  const lines = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const report = lines.findIndex(line => line.lost)
  expect(lines[report]).toEqual({ lost, code: 'SLOW_READER' })
  // The report stands where the lines are missing.
  expect(lines[report + 1].at - lines[report - 1].at).toBe(lost + 1)
  expect(lines).toHaveLength(61_000 - lost + 1)
})

test('what was written just before the exit gets out where the reader works', async () => {
  const writer = await startWriter('pipe')
  let text = ''
  writer.stdout!.on('data', chunk => (text += chunk))
  writer.send({ lines: 5_000, exit: true })
  const [code] = await once(writer, 'close')
  expect([code, text.match(/\n/g)!.length]).toEqual([7, 5_000])
})

test('a reader that reads nothing does not keep a program from its exit', async () => {
  const writer = await startWriter('pipe')
  writer.stdout!.pause()
  await ask(writer, { lines: 20_000 })
  writer.send({ lines: 20_000, exit: true })
  expect((await once(writer, 'exit'))[0]).toBe(7)
})
