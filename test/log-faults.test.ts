import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { mountSmallDisk } from './setup/small-disk.ts'
import { type System, type SystemOptions, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

/** Whatever happens to its log, a program serves requests, counts the lines that it loses, and stops in order. */

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

/** By default, more lines than the buffers of a pipe hold. */
async function writeLines(system: System, requests = 1_500): Promise<void> {
  const path = `/api/v1/wallets/${system.wallets[0]!.walletId}/balance`
  for (let at = 0; at < requests; at += 100)
    await Promise.all(Array.from({ length: 100 }, () => call(system, 'GET', path)))
}

async function linesLost(system: System): Promise<{ gateway: number; core: number }> {
  return {
    gateway: await readMetric(system.gateways[0]!.internalUrl, 'gateway_log_lines_lost_total'),
    core: await readMetric(system.cores[0]!.url, 'core_log_lines_lost_total'),
  }
}

async function expectService(system: System): Promise<void> {
  expect((await call(system, 'POST', createPath, transferOrder(system))).body.code).toBe('2000')
  for (const { url } of [...system.gateways, ...system.cores]) expect((await fetch(`${url}/healthz`)).status).toBe(200)
}

/** The programs stop in order on SIGTERM. */
async function expectStop({ gateways, cores }: System): Promise<void> {
  for (const program of [...gateways, ...cores]) expect(await program.stop()).toBe(0)
}

/** Serves requests until both programs have lost lines. */
async function untilLinesAreLost(system: System): Promise<void> {
  await until('lines are lost', async () => {
    await expectService(system)
    const { gateway, core } = await linesLost(system)
    return gateway > 0 && core > 0
  })
}

test('a log reader that has exited: lines are lost and counted', async () => {
  const system = await start()
  for (const { process } of [...system.gateways, ...system.cores]) process.stdout!.destroy()
  await writeLines(system, 100)
  await untilLinesAreLost(system)
  await expectStop(system)
})

test('a log reader that reads nothing: requests do not wait', async () => {
  const system = await start()
  for (const { process } of [...system.gateways, ...system.cores]) process.stdout!.pause()
  await writeLines(system)
  await expectService(system)
  await expectStop(system)
})

test('a log reader that pauses loses no line that fits in memory', async () => {
  const system = await start({ cores: 1 })
  const [gateway] = system.gateways
  gateway!.process.stdout!.pause()
  await writeLines(system)
  gateway!.process.stdout!.resume()
  const last = await call(system, 'GET', '/api/v1/wallets')
  await until('the last line', () => gateway!.output().includes(last.headers.get('x-request-id')!))
  expect(gateway!.output().match(/a request was answered/g)!.length).toBe(1_501)
  expect(await linesLost(system)).toEqual({ gateway: 0, core: 0 })
})

test('a full device: lines are lost and counted', async () => {
  const full = await open('/dev/full', 'w')
  cleanUp.push(() => full.close())
  const system = await start({ stdout: full.fd })
  await writeLines(system, 100)
  await untilLinesAreLost(system)
  await expectStop(system)
})

test('a full disk: when there is space again, a line reports how many were lost', async () => {
  const disk = await mountSmallDisk()
  if (!disk) return console.log('disk full: this user may not mount a disk; only the full device is tested')
  cleanUp.push(() => disk.unmount())
  const path = join(disk.path, 'programs.log')
  const file = await open(path, 'a')
  cleanUp.push(() => file.close())
  const system = await start({ stdout: file.fd })
  await disk.fill()
  await writeLines(system, 300)
  await untilLinesAreLost(system)
  await disk.empty()
  const reports = await until('both programs report lost lines', async () => {
    // A report may follow a line that the other program could not finish.
    const lines = (await readFile(path, 'utf8')).match(/\{[^{}\n]*lines were lost[^{}\n]*\}/g) ?? []
    const found = lines.map(line => JSON.parse(line))
    return new Set(found.map(({ service }) => service)).size === 2 && found
  })
  const lost = await linesLost(system)
  const reported = (service: string) =>
    reports.filter(line => line.service === service).reduce((sum, line) => sum + line.lost, 0)
  expect({ gateway: reported('gateway'), core: reported('core') }).toEqual(lost)
  expect(reports[0]).toMatchObject({ level: 50, code: 'ENOSPC', msg: expect.stringContaining('the disk is full') })
  await expectStop(system)
})

/** A program that only writes log lines, as many as a message asks for. */
async function startWriter(stdio: 'pipe' | number): Promise<ChildProcess> {
  const script = join(await makeTempDir('writer'), 'writer.ts')
  const runtime = join(import.meta.dirname, '../packages/runtime/src/log-output.ts')
  await writeFile(
    script,
    `import { LogOutput } from ${JSON.stringify(runtime)}
     const output = new LogOutput(1, loss => JSON.stringify(loss) + '\\n')
     let at = 0
     let exitedAt
     // After the flush of the output, which may take half a second.
     process.on('exit', () => { if (performance.now() - exitedAt > 500) process.exitCode = 8 })
     process.on('message', ({ lines, exit }) => {
       for (const end = at + (lines ?? 0); at < end; at++) output.write(JSON.stringify({ at, text: 'x'.repeat(200) }) + '\\n')
       if (exit) {
         exitedAt = performance.now()
         process.exit(7)
       }
       process.send({ at, lost: output.lost })
     })
     process.on('disconnect', () => process.exit(0))`,
  )
  const child = fork(script, [], { stdio: ['ignore', stdio, 'inherit', 'ipc'] })
  cleanUp.push(async () => child.kill('SIGKILL'))
  return child
}

async function request(child: ChildProcess, message: object): Promise<{ at: number; lost: number }> {
  const answer = once(child, 'message')
  child.send(message)
  return (await answer)[0]
}

test('beyond the memory limit, the oldest lines are lost, and each is counted', async () => {
  const writer = await startWriter('pipe')
  let text = ''
  writer.stdout!.pause()
  await request(writer, { lines: 1_000 })
  const { lost } = await request(writer, { lines: 60_000 })
  expect(lost).toBeGreaterThan(30_000)
  writer.stdout!.on('data', chunk => (text += chunk)).resume()
  await until('the last line', () => text.includes('"at":60999,'))
  const lines = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const report = lines.findIndex(line => line.lost)
  expect(lines[report]).toEqual({ lost, code: 'SLOW_READER' })
  // The report is at the position of the missing lines.
  expect(lines[report + 1].at - lines[report - 1].at).toBe(lost + 1)
  expect(lines).toHaveLength(61_000 - lost + 1)
})

test('lines written just before an exit reach a working reader', async () => {
  const text = await until('this process reads as fast as a program waits for it', async () => {
    const writer = await startWriter('pipe')
    let text = ''
    writer.stdout!.on('data', chunk => (text += chunk))
    writer.send({ lines: 5_000, exit: true })
    const [code] = await once(writer, 'close')
    return code === 7 && text
  })
  expect(text.match(/\n/g)!.length).toBe(5_000)
})

test('a reader that reads nothing does not prevent a program from exiting', async () => {
  const writer = await startWriter('pipe')
  writer.stdout!.pause()
  await request(writer, { lines: 20_000 })
  writer.send({ lines: 20_000, exit: true })
  expect([7, 8]).toContain((await once(writer, 'exit'))[0])
})
