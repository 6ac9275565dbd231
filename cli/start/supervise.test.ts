import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeTempDir } from '../../test/setup/temp.ts'
import { until } from '../../test/setup/until.ts'
import type { Child } from '../processes/child.ts'
import { describeProcess, signalProcess } from '../processes/processes.ts'
import { type LoggedCommand, runTask, startService } from '../processes/service.ts'
import { explainDiskFull } from './disk-full.ts'
import { type Supervised, supervise } from './supervise.ts'

let home: string
let pidFile: string
let abort: AbortController
const cleanUp: (() => Promise<void>)[] = []

beforeEach(async () => {
  home = await makeTempDir('supervise')
  pidFile = join(home, 'pid')
  abort = new AbortController()
})

afterEach(async () => {
  for (const each of cleanUp.splice(0)) await each()
})

/** A program that writes its pid to a file, then runs `body`. */
async function program(body: string): Promise<LoggedCommand> {
  const script = join(home, 'program.mjs')
  await writeFile(
    script,
    `import { writeFileSync } from 'node:fs'
     writeFileSync(${JSON.stringify(pidFile)}, String(process.pid))
     const ready = () => process.send({ type: 'ready' })
     process.on('disconnect', () => process.exit(0))
     ${body}`,
  )
  return { name: 'program', script, env: process.env, logFile: join(home, 'program.log') }
}

const staysUp = 'setInterval(() => {}, 1e6); ready()'

async function currentPid(): Promise<number> {
  return Number(await readFile(pidFile, 'utf8'))
}

async function start(body: string): Promise<Child> {
  const running = await startService(await program(body), abort.signal)
  cleanUp.push(async () => {
    running.forceStop()
    await running.exited
  })
  return running
}

async function keepRunning(body: string, lines: string[]): Promise<Supervised> {
  const command = await program(body)
  const service = await supervise(
    'it',
    signal => startService(command, signal),
    abort.signal,
    line => lines.push(line),
  )
  cleanUp.push(service.stop)
  return service
}

describe('a service', () => {
  test('has started when it reports that it is ready, and stops on request', async () => {
    const running = await start(staysUp)
    const pid = await currentPid()
    expect(await describeProcess(pid)).toBeDefined()
    await running.stop()
    expect(await running.exited).toBe('SIGTERM')
    expect(await describeProcess(pid)).toBe(undefined)
  })

  test('that exits before it is ready is an error that quotes its log', async () => {
    await expect(start(`console.error('the port is taken'); process.exit(3)`)).rejects.toThrow(
      /^program did not start \(exit 3\); the end of .*program.log:\nthe port is taken$/,
    )
  })

  test('that ignores SIGTERM is killed by forceStop', async () => {
    const running = await start(`process.on('SIGTERM', () => console.log('no')); ${staysUp}`)
    const stopped = running.stop()
    await until('it has ignored SIGTERM', async () => (await readFile(join(home, 'program.log'), 'utf8')) === 'no\n')
    running.forceStop()
    await stopped
    expect(await running.exited).toBe('SIGKILL')
  })

  test('whose start is aborted is stopped', async () => {
    const starting = start('setInterval(() => {}, 1e6)')
    const settled = expect(starting).rejects.toThrow(/abort/)
    const pid = await until('it runs', () => currentPid().catch(() => undefined))
    abort.abort()
    await settled
    expect(await describeProcess(pid)).toBe(undefined)
  })
})

describe('a task', () => {
  test('that fails is an error that quotes its log', async () => {
    const task = await program(`console.error('no such role'); process.exit(1)`)
    await expect(runTask(task, abort.signal)).rejects.toThrow(/program failed \(exit 1\).*\nno such role/)
  })

  test('that succeeds is waited for', async () => {
    const task = await program(`setTimeout(() => { console.log('done'); process.exit(0) }, 100)`)
    await runTask(task, abort.signal)
    expect(await readFile(task.logFile, 'utf8')).toBe('done\n')
  })
})

describe('a supervised service', () => {
  test('is restarted when it is killed, and one line says so', async () => {
    const lines: string[] = []
    await keepRunning(staysUp, lines)
    const first = await currentPid()
    signalProcess(first, 'SIGKILL')
    await until('it runs again', () => lines.includes('it is running again'))
    expect(lines).toEqual(['it exited unexpectedly (SIGKILL); restarting it in 100 ms', 'it is running again'])
    expect(await currentPid()).not.toBe(first)
  })

  test('that keeps failing is restarted after increasing delays', async () => {
    const lines: string[] = []
    await keepRunning('ready(); setTimeout(() => process.exit(7), 50)', lines)
    await until('three restarts', () => lines.filter(line => line.includes('restarting')).length >= 3)
    expect(lines.filter(line => line.includes('restarting')).slice(0, 3)).toEqual([
      'it exited unexpectedly (exit 7); restarting it in 100 ms',
      'it exited unexpectedly (exit 7); restarting it in 200 ms',
      'it exited unexpectedly (exit 7); restarting it in 400 ms',
    ])
  })

  test('that cannot be restarted says why, and on a full disk that the disk is full', async () => {
    const lines: string[] = []
    const hasFailed = JSON.stringify(join(home, 'failed'))
    await keepRunning(
      `import { existsSync } from 'node:fs'
       if (existsSync(${hasFailed})) { console.error('FATAL: the key is wrong'); console.error('bye'); process.exit(3) }
       writeFileSync(${hasFailed}, '')
       ${staysUp}`,
      lines,
    )
    signalProcess(await currentPid(), 'SIGKILL')
    await until('it has failed', () => lines.length >= 2)
    expect(lines[1]).toMatch(/^program did not start \(exit 3\): FATAL: the key is wrong; restarting it in 200 ms$/)

    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    expect((await explainDiskFull(full, '/data')).message).toBe(
      'The disk that holds /data is full: free some space. ENOSPC: no space left on device, write',
    )
    const other = new Error('the port is taken')
    expect(await explainDiskFull(other, home)).toBe(other)
  })

  test('whose first start fails is not restarted', async () => {
    const lines: string[] = []
    await expect(keepRunning('process.exit(1)', lines)).rejects.toThrow(/did not start/)
    expect(lines).toEqual([])
  })

  test('that does not end is killed, and one line names it', async () => {
    const lines: string[] = []
    const service = await keepRunning(`process.on('SIGTERM', () => console.log('no')); ${staysUp}`, lines)
    const stopped = service.stop()
    await until('it has ignored SIGTERM', async () => (await readFile(join(home, 'program.log'), 'utf8')) === 'no\n')
    service.forceStop()
    await stopped
    expect(lines).toEqual(['it did not end in time, and was killed'])
  })

  test('is not restarted after stop', async () => {
    const lines: string[] = []
    const service = await keepRunning(staysUp, lines)
    const pid = await currentPid()
    await service.stop()
    expect(await describeProcess(pid)).toBe(undefined)
    expect(lines).toEqual([])
  })

  test('is not restarted after the signal was aborted', async () => {
    const lines: string[] = []
    const service = await keepRunning(staysUp, lines)
    abort.abort()
    signalProcess(await currentPid(), 'SIGKILL')
    await service.stop()
    expect(lines).toEqual([])
  })
})
