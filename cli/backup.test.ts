import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { open, readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createLog } from '@workspace-wallet/runtime'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openCore } from '../services/core/src/compose.ts'
import { coreSchema } from '../services/core/src/config.ts'
import { migrate } from '../services/core/src/database/migrate.ts'
import { appRouter } from '../services/core/src/routers/app-router.ts'
import { execute, query } from '../test/setup/database.ts'
import { makeTempDir } from '../test/setup/temp.ts'
import { type Postgres, startPostgres } from './processes/postgres.ts'

/** The place of this PostgreSQL that is not home, which has the schema `public`. */
const [place, schema] = [1, 'bucket_1']

// A separate PostgreSQL, because a backup contains the whole server.
let directory: string
let postgres: Postgres
let secretsFile: string

beforeAll(async () => {
  directory = await makeTempDir('backup')
  const secrets = {
    superuserPassword: 'superuser',
    servicePassword: 'service',
    keyEncryptionKeys: `k1:${randomBytes(32).toString('base64')}`,
    ledgerChainKey: randomBytes(32).toString('base64'),
    receiptKeys: `r1:${randomBytes(32).toString('base64')}`,
  }
  secretsFile = join(directory, 'secrets.json')
  await writeFile(secretsFile, JSON.stringify(secrets))
  postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    port: 0,
    durable: false,
    superuserPassword: secrets.superuserPassword,
  })
  await execute(postgres.url('postgres'), 'create database wallet')
  const serviceUrl = postgres.url('wallet', 'wallet_service', secrets.servicePassword)
  for (const [at, parameter] of ['', `?schema=${schema}`].entries()) {
    await migrate(postgres.url('wallet') + parameter, serviceUrl + parameter)
    await newWorkspace(serviceUrl + parameter, at, secrets)
  }
})
afterAll(() => postgres.stop())

/** As core creates one in this place. */
async function newWorkspace(serviceUrl: string, place: number, secrets: Record<string, string>): Promise<void> {
  const config = coreSchema.parse({
    DATABASE_URL: serviceUrl,
    DATABASE_PLACE: String(place),
    KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys,
    LEDGER_CHAIN_KEY: secrets.ledgerChainKey,
    RECEIPT_KEYS: secrets.receiptKeys,
    SERVICE_TOKENS: `test:admin:${'x'.repeat(32)}`,
    VERIFY_EVERY_MINUTES: '0',
  })
  const core = await openCore(config, createLog('test', 'silent').log, new AbortController().signal)
  try {
    const { home } = core.places
    const as = appRouter.createCaller({ places: core.places, core: home, token: { name: 'test', role: 'admin' } })
    await as.workspaces.create({ name: 'Kept' })
  } finally {
    await core.close()
  }
}

/** @throws Error with the standard error of the command, if it fails */
async function backup(...args: string[]): Promise<string> {
  const script = fileURLToPath(new URL('backup.ts', import.meta.url))
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, TMPDIR: directory, BACKUP_DATABASE_URL: postgres.url('postgres') }
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], { env }).catch(error => {
    throw new Error(error.stderr)
  })
  return stdout
}

const check = (file: string, ...args: string[]) => backup('check', file, '--secrets', secretsFile, ...args)

/** The position of a file's content in a tar. */
async function positionInTar(file: string, path: string): Promise<{ start: number; size: number }> {
  const tar = await readFile(file)
  for (let at = 0; at < tar.length; ) {
    const name = tar
      .subarray(at, at + 100)
      .toString('latin1')
      .replace(/\0.*$/s, '')
    const size = Number.parseInt(tar.subarray(at + 124, at + 136).toString('latin1'), 8) || 0
    if (name === path) return { start: at + 512, size }
    at += 512 + Math.ceil(size / 512) * 512
  }
  throw new Error(`no ${path} in ${file}`)
}

async function flipByte(file: string, at: number): Promise<void> {
  const handle = await open(file, 'r+')
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, at)
  await handle.write(Buffer.of(buffer[0]! ^ 1), 0, 1, at)
  await handle.close()
}

test('a check compares every file and every page, and names the file of a flipped byte in an index', async () => {
  const file = join(directory, 'flipped.tar')
  await backup('take', file)
  const isSound = expect.stringMatching(/The ledger is sound: 1 workspace,.*The backup can be used\./s)
  expect(await check(file)).toEqual(isSound)
  expect(await check(file, '--place', String(place), '--schema', schema)).toEqual(isSound)
  // In another place, it would be a copy of the workspace.
  await expect(check(file, '--schema', schema)).rejects.toThrow('The ledger in the backup is not sound')

  const [index] = await query(postgres.url('wallet'), `select pg_relation_filepath('public.workspace_pkey') as path`)
  const { start } = await positionInTar(file, index!.path as string)
  // In the unused middle of a page, which PostgreSQL itself does not read.
  await flipByte(file, start + 4000)
  await expect(check(file)).rejects.toThrow(`  ${index!.path} was changed after the backup`)
})

test('a check does not need the files and the standbys that the settings in a backup name, as those of Patroni do', async () => {
  const settings = join(directory, 'postgres', 'postgresql.conf')
  const original = await readFile(settings, 'utf8')
  // The running server does not read it again.
  const ofPatroni = `hba_file = '/elsewhere/pg_hba.conf'\nident_file = '/elsewhere/pg_ident.conf'\nsynchronous_standby_names = 'ANY 1 (a, b)'\n`
  await writeFile(settings, original + ofPatroni)
  const file = join(directory, 'patroni.tar')
  await backup('take', file)
  await writeFile(settings, original)
  expect(await check(file)).toContain('The backup can be used.')
})

test('a backup with a changed manifest, or without one, is rejected', async () => {
  const file = join(directory, 'manifest.tar')
  await backup('take', file)
  const { start, size } = await positionInTar(file, 'backup_manifest')
  await flipByte(file, start + Math.floor(size / 2))
  await expect(check(file)).rejects.toThrow('The manifest of the backup is damaged')
  // Changes the name in the header, and the checksum of the header.
  await flipByte(file, start - 512)
  const header = (await readFile(file)).subarray(start - 512, start)
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte)
  const handle = await open(file, 'r+')
  await handle.write(`${sum.toString(8).padStart(6, '0')}\0 `, start - 512 + 148, 'latin1')
  await handle.close()
  await expect(check(file)).rejects.toThrow('The backup has no manifest, so it cannot be checked')
})

test('a backup that is truncated between two of its files is rejected', async () => {
  const file = join(directory, 'cut.tar')
  await backup('take', file)
  await truncate(file, (await positionInTar(file, 'backup_manifest')).start - 512)
  await expect(check(file)).rejects.toThrow('is not a complete base backup (it is truncated)')
})

test('an index that lacks a row of its table is found, and the log of PostgreSQL is kept', async () => {
  // Simulates a lost write of the storage, which no checksum reveals.
  const setReady = (ready: boolean) =>
    execute(
      postgres.url('wallet'),
      `update pg_index set indisready = ${ready} where indexrelid = 'workspace_pkey'::regclass`,
    )
  await setReady(false)
  await execute(
    postgres.url('wallet'),
    `insert into workspace (id, name, created_at, updated_at, revision, mac)
     values (gen_random_uuid(), 'Lost', now(), now(), 1, '')`,
  )
  await setReady(true)
  const file = join(directory, 'index.tar')
  await backup('take', file)
  const failure = await check(file).catch((error: Error) => error.message)
  expect(failure).toMatch(/workspace_pkey: heap tuple .* lacks matching index tuple/)
  const [, logs] = /The logs of PostgreSQL and core are in (\S+)\.\n/.exec(failure)!
  expect(await readdir(logs!)).toContain('postgres.log')
  expect(await readFile(join(logs!, 'postgres.log'), 'utf8')).toContain('lacks matching index tuple')
})
