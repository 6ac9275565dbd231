/** `npm run backup -- check`: restores a backup into a temporary directory and verifies it there. */
import { randomBytes } from 'node:crypto'
import { chmod, copyFile, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createCoreClient } from '@workspace-wallet/core-client'
import type { CoreAddress } from '../admin/connection.ts'
import { Progress } from '../admin/progress.ts'
import { sentenceOf } from '../admin/sentences.ts'
import { describeReport, failureOf, verify } from '../admin/verification.ts'
import { pickFreePort } from '../processes/ports.ts'
import { type Postgres, startPostgres } from '../processes/postgres.ts'
import { startService } from '../processes/service.ts'
import { identityOf } from '../processes/unprivileged.ts'
import { abortOnInterrupt } from './interrupt.ts'
import { compareWithManifest } from './manifest.ts'
import { checkPages } from './pages.ts'
import { restore, settingsOfCopy } from './restore.ts'
import { readSecrets } from './secrets.ts'

const database = 'wallet'
const serviceRole = 'wallet_service'
const coreScript = fileURLToPath(new URL('../../services/core/src/main.ts', import.meta.url))
const maxListedFaults = 20

/** What a check has started or created: removed in reverse order. */
type CleanUp = (() => Promise<unknown>)[]

/**
 * @param secretsFile secrets.json of the installation
 * @param against a checkpoint file that the restored ledger must continue, as far as it is about this place
 * @param place the number of the place that is verified
 * @param schema the schema with the tables of that place
 * @throws Error that names what is damaged, and where the logs of PostgreSQL and core are
 */
export async function check(
  file: string,
  secretsFile: string,
  { against, place, schema }: { against: string | undefined; place: number; schema: string },
): Promise<void> {
  const secrets = await readSecrets(secretsFile)
  const signal = abortOnInterrupt()
  const scratch = await mkdtemp(join(tmpdir(), 'wallet-backup-'))
  // PostgreSQL may run as another user, and its data is in a private directory of its own.
  await chmod(scratch, 0o711)
  const cleanUp: CleanUp = [() => rm(scratch, { recursive: true, force: true })]
  try {
    await restore(file, join(scratch, 'postgres'), signal)
    failOn(await compareWithManifest(join(scratch, 'postgres')), 'The backup differs from its manifest')
    console.log('Every file is as it was backed up.')

    const postgres = await startPostgres({
      dataDir: join(scratch, 'postgres'),
      port: 0,
      durable: false,
      superuserPassword: secrets.superuserPassword,
      settings: {
        ...settingsOfCopy(join(scratch, 'postgres')),
        // Those in the backup may name standbys, which a copy does not have: it would wait for them at each commit.
        synchronous_standby_names: '',
      },
      signal,
      removeWhenStopped: [scratch],
    })
    cleanUp.push(postgres.stop)
    failOn(await checkPages(postgres.url(database)), 'The database in the backup is damaged')
    console.log('Every page can be read, and every index agrees with its table.')

    const core = await startCore({ postgres, place, schema }, secrets, scratch, signal, cleanUp)
    await verifyLedger(core, against, signal)
    console.log('The backup can be used.')
  } catch (error) {
    const logs = await keepLogs(scratch)
    if (!logs) throw error
    const message = (error as Error).message.replaceAll(scratch, logs)
    throw new Error(`${message}\nThe logs of PostgreSQL and core are in ${logs}.`, { cause: error })
  } finally {
    for (const each of cleanUp.toReversed()) await each()
  }
}

async function startCore(
  { postgres, place, schema }: { postgres: Postgres; place: number; schema: string },
  secrets: Awaited<ReturnType<typeof readSecrets>>,
  scratch: string,
  signal: AbortSignal,
  cleanUp: CleanUp,
): Promise<CoreAddress> {
  const token = randomBytes(32).toString('base64url')
  const port = await pickFreePort()
  const env = {
    CORE_PORT: String(port),
    DATABASE_URL: `${postgres.url(database, serviceRole, secrets.servicePassword)}?schema=${schema}`,
    DATABASE_PLACE: String(place),
    // Without it, core accepts the owner of the tables, which is another one under npm start than in containers.
    ...(process.env.DATABASE_WRITERS && { DATABASE_WRITERS: process.env.DATABASE_WRITERS }),
    KEY_ENCRYPTION_KEYS: secrets.keyEncryptionKeys,
    LEDGER_CHAIN_KEY: secrets.ledgerChainKey,
    RECEIPT_KEYS: secrets.receiptKeys,
    SERVICE_TOKENS: `check:admin:${token}`,
    LOG_LEVEL: 'error',
  }
  const identity = await identityOf('core', { program: process.execPath, files: [coreScript] })
  const logFile = join(scratch, 'core.log')
  const core = await startService({ name: 'core', script: coreScript, logFile, env, identity }, signal)
  cleanUp.push(core.stop)
  return { urls: [`http://127.0.0.1:${port}`], token, source: 'this check' }
}

async function verifyLedger(address: CoreAddress, against: string | undefined, signal: AbortSignal): Promise<void> {
  const core = createCoreClient({ url: address.urls, token: address.token })
  const progress = new Progress(process.stderr)
  try {
    const report = await verify(core, { against, signal }, progress)
    progress.clear()
    console.log(describeReport(report))
    const failure = failureOf(report)
    if (failure) throw new Error(`The ledger in the backup is not sound. ${failure}`)
  } catch (error) {
    progress.clear()
    signal.throwIfAborted()
    throw new Error(sentenceOf(error, address), { cause: error })
  } finally {
    await core.close()
  }
}

/** @throws Error that lists the first faults */
function failOn(faults: string[], sentence: string): void {
  if (faults.length === 0) return
  const rest = faults.length > maxListedFaults ? [`and ${faults.length - maxListedFaults} more`] : []
  throw new Error([`${sentence}: use another one.`, ...faults.slice(0, maxListedFaults), ...rest].join('\n  '))
}

/** Copies the logs out of the temporary directory. Returns their new directory, or null if there are none. */
async function keepLogs(scratch: string): Promise<string | null> {
  const names = (await readdir(scratch)).filter(name => name.endsWith('.log'))
  if (names.length === 0) return null
  const kept = await mkdtemp(join(tmpdir(), 'wallet-backup-logs-'))
  for (const name of names) await copyFile(join(scratch, name), join(kept, name))
  return kept
}
