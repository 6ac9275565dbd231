/** `npm run backup -- take|check|restore`: a copy of the database, and proof that it can be used. */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, copyFile, mkdir, mkdtemp, open, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { pickFreePort } from '../tools/services/ports.ts'
import { startPostgres } from '../tools/services/postgres.ts'
import { startService } from '../tools/services/service.ts'
import { identityBeside } from '../tools/services/unprivileged.ts'
import { takeBaseBackup, tarEnd } from './backup/base-backup.ts'
import { compareWithManifest } from './backup/manifest.ts'
import { checkPages } from './backup/pages.ts'
import { anyText, type Values } from './command-line/flags.ts'
import { createCommand, createGroup, runProgram } from './command-line/program.ts'
import { readJson } from './start/private-file.ts'

/** A damaged file often is not the only one. */
const listedFaults = 20
const checkFlags = {
  secrets: {
    value: 'FILE',
    help: 'secrets.json of the installation (default: the one in DATA_DIR, else in .data)',
    parse: anyText,
  },
  against: { value: 'FILE', help: 'a checkpoint that the restored ledger must continue', parse: anyText },
} as const

const program = createGroup('npm run backup --', 'back up the database, and prove that the backup can be used', [
  createCommand({
    name: 'take',
    help: 'copy the running database into FILE, a tar archive, without stopping anything',
    words: { FILE: 'the file to create' },
    flags: {},
    examples: ['wallet.tar'],
    run: (_, [file]) => take(file!),
  }),
  createCommand({
    name: 'check',
    help: 'restore FILE into a temporary directory, compare it with its manifest, and verify its database and ledger',
    words: { FILE: 'the backup' },
    flags: checkFlags,
    examples: ['wallet.tar', 'wallet.tar --secrets /safe/secrets.json --against ledger-2026-11.checkpoint'],
    run: (values, [file]) => check(file!, values),
  }),
  createCommand({
    name: 'restore',
    help: 'unpack FILE into DIR, a new data directory for PostgreSQL 18',
    words: { FILE: 'the backup', DIR: 'the directory to create' },
    flags: {},
    examples: ['wallet.tar /var/lib/postgresql/18/restored'],
    run: (_, [file, directory]) => restore(file!, directory!),
  }),
]).addHelpText(
  'after',
  `
take copies the database of npm start, or the one of BACKUP_DATABASE_URL, whose role needs the REPLICATION attribute.
The archive has the format of pg_basebackup: archives of pg_basebackup --format=tar --wal-method=fetch
--manifest-checksums=SHA256 can be checked and restored as well. It contains amounts and names, and secrets only
encrypted; keep secrets.json, which decrypts them, in another place.

check compares every file with the manifest of the backup, starts PostgreSQL on the files, reads every page, compares
every index with its table, starts core and runs ledger verify. It needs secrets.json and the program tar.

Examples:
  npm run backup -- take wallet.tar
  npm run backup -- check wallet.tar`,
)

const root = fileURLToPath(new URL('../', import.meta.url))
const database = 'wallet'
const serviceRole = 'wallet_service'

async function take(file: string): Promise<void> {
  if (await stat(file).catch(() => null)) throw new Error(`${file} is there already: choose another name.`)
  await takeBaseBackup(await sourceUrl(process.env), file)
  const { size } = await stat(file)
  console.log(
    `The backup is in ${file} (${(size / 2 ** 20).toFixed(1)} MiB). See that it can be used: npm run backup -- check ${file}`,
  )
}

async function sourceUrl({ BACKUP_DATABASE_URL: url, DATA_DIR }: NodeJS.ProcessEnv): Promise<string> {
  if (url) return url
  const dataDir = DATA_DIR || '.data'
  const running = (await readJson(join(dataDir, 'running.json'))) as { postgresPort?: number } | undefined
  if (!running?.postgresPort)
    throw new Error(`No npm start runs on ${dataDir}: start it, set DATA_DIR, or set BACKUP_DATABASE_URL.`)
  const { superuserPassword } = await readSecrets(join(dataDir, 'secrets.json'))
  return `postgresql://postgres:${superuserPassword}@127.0.0.1:${running.postgresPort}/postgres`
}

type Secrets = Record<'superuserPassword' | 'servicePassword' | 'keyEncryptionKeys' | 'ledgerChainKey', string>

/** That of npm start, or of the containers: both have these. */
async function readSecrets(path: string): Promise<Secrets> {
  const found = (await readJson(path)) as Secrets | undefined
  if (!found?.servicePassword || !found.ledgerChainKey || !found.keyEncryptionKeys)
    throw new Error(`${path} does not hold the secrets of an installation: name the right one with --secrets.`)
  return found
}

/** tar itself takes a file that was cut off between two of its files for a whole one. */
async function assertTarEnds(file: string): Promise<void> {
  const handle = await open(file)
  try {
    const { size } = await handle.stat()
    const end = Buffer.alloc(tarEnd.length)
    const { bytesRead } = await handle.read(end, 0, end.length, Math.max(0, size - end.length))
    if (bytesRead < end.length || !end.equals(tarEnd)) throw new Error('it was cut off')
  } finally {
    await handle.close()
  }
}

/** A directory that PostgreSQL can be started on. It replays the log in it, as after a crash. */
async function restore(file: string, directory: string): Promise<void> {
  if (await stat(directory).catch(() => null)) throw new Error(`${directory} is there already: choose another one.`)
  await mkdir(directory, { mode: 0o700, recursive: true })
  try {
    await assertTarEnds(file)
    await promisify(execFile)('tar', ['--extract', '--no-same-owner', '--file', file, '--directory', directory])
    await stat(join(directory, 'backup_label'))
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    const cause = (error as { stderr?: string }).stderr?.trim().split('\n')[0] ?? (error as Error).message
    throw new Error(`${file} cannot be restored, it is no whole base backup: ${cause}.`, { cause: error })
  }
  console.log(`Restored into ${directory}.`)
}

async function check(file: string, { secrets: secretsFile, against }: Values<typeof checkFlags>): Promise<void> {
  const secrets = await readSecrets(secretsFile ?? join(process.env.DATA_DIR || '.data', 'secrets.json'))
  const scratch = await mkdtemp(join(tmpdir(), 'wallet-backup-'))
  // PostgreSQL may have to run as another user; what it holds is in a directory of its own.
  await chmod(scratch, 0o711)
  const ending = new AbortController()
  process.once('SIGINT', () => ending.abort(new Error('Interrupted.')))
  process.once('SIGTERM', () => ending.abort(new Error('Interrupted.')))
  const stops = [() => rm(scratch, { recursive: true, force: true })]
  try {
    await restore(file, join(scratch, 'postgres'))
    failOn(await compareWithManifest(join(scratch, 'postgres')), 'The backup is not what was taken')
    const postgres = await startPostgres({
      dataDir: join(scratch, 'postgres'),
      port: 0,
      durable: false,
      superuserPassword: secrets.superuserPassword,
      signal: ending.signal,
      removeWhenStopped: [scratch],
    })
    stops.push(postgres.stop)
    failOn(await checkPages(postgres.url(database)), 'The backup holds a damaged database')
    console.log('Every file is as it was backed up, every page can be read, every index agrees with its table.')
    const adminToken = randomBytes(32).toString('base64url')
    const corePort = await pickFreePort()
    const environment = {
      CORE_PORT: String(corePort),
      DATABASE_URL: postgres.url(database, serviceRole, secrets.servicePassword),
      KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys,
      LEDGER_CHAIN_KEY: secrets.ledgerChainKey,
      SERVICE_TOKENS: `check:admin:${adminToken}`,
      LOG_LEVEL: 'error',
    }
    const script = join(root, 'services/core/src/main.ts')
    const logFile = join(scratch, 'core.log')
    const identity = await identityBeside(join(scratch, 'postgres'), { program: process.execPath, files: [script] })
    const core = await startService({ name: 'core', script, logFile, env: environment, identity }, ending.signal)
    stops.push(core.stop)
    console.log('PostgreSQL and core run on the restored copy.')
    const checkpoint = against ? ['--against', resolve(against)] : []
    const verify = spawn(process.execPath, [join(root, 'cli/admin.ts'), 'ledger', 'verify', ...checkpoint], {
      env: { PATH: process.env.PATH, CORE_URL: `http://127.0.0.1:${corePort}`, CORE_TOKEN: adminToken },
      stdio: 'inherit',
      signal: ending.signal,
    })
    const [code] = await once(verify, 'exit')
    if (code !== 0) throw new Error('The backup does not hold a sound ledger.')
    console.log('The backup can be used.')
  } catch (error) {
    const logs = await keepLogs(scratch)
    if (!logs) throw error
    const message = (error as Error).message.replaceAll(scratch, logs)
    throw new Error(`${message}\nThe logs of PostgreSQL and core are in ${logs}.`, { cause: error })
  } finally {
    for (const stop of stops.toReversed()) await stop()
  }
}

/** @throws Error that lists the first faults */
function failOn(faults: string[], sentence: string): void {
  if (faults.length === 0) return
  const rest = faults.length > listedFaults ? [`and ${faults.length - listedFaults} more`] : []
  throw new Error([`${sentence}: use another one.`, ...faults.slice(0, listedFaults), ...rest].join('\n  '))
}

/** @returns the directory that they are in from now on; null when nothing has written one */
async function keepLogs(scratch: string): Promise<string | null> {
  const names = (await readdir(scratch)).filter(name => name.endsWith('.log'))
  if (names.length === 0) return null
  const kept = await mkdtemp(join(tmpdir(), 'wallet-backup-logs-'))
  for (const name of names) await copyFile(join(scratch, name), join(kept, name))
  return kept
}

await runProgram(program, process.argv.slice(2), ({ message }) => message)
