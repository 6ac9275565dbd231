/** `npm run backup -- take|check|restore`: backs up the database, and checks that a backup can be restored. */
import { rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createCoreClient, domainErrorOf } from '@workspace-wallet/core-client'
import { defaultSchema, hasUsableSchema } from '../services/core/src/database/schema.ts'
import { findCore } from './admin/connection.ts'
import { parsePlaceNumber, parsePlaces, parseTime } from './admin/values.ts'
import { takeBaseBackup } from './backup/base-backup.ts'
import { check } from './backup/check.ts'
import { abortOnInterrupt } from './backup/interrupt.ts'
import { recover, type Target } from './backup/recover.ts'
import { restore } from './backup/restore.ts'
import { readSecrets } from './backup/secrets.ts'
import { dataDirOf } from './command-line/data-dir.ts'
import { anyText, UsageError } from './command-line/flags.ts'
import { createCommand, createGroup, runProgram } from './command-line/program.ts'
import { readJson } from './start/private-file.ts'

const program = createGroup('npm run backup --', 'back up the database, and check that the backup can be restored', [
  createCommand({
    name: 'take',
    help: 'copy the running database into FILE, a tar archive, without interrupting the service',
    words: { FILE: 'the file to create' },
    flags: {
      places: {
        value: 'NUMBERS',
        help: 'the places that the database contains, if core has several (docs/scale.md)',
        parse: parsePlaces,
      },
    },
    examples: ['wallet.tar', 'db-2.tar --places 1'],
    run: ({ places }, [file]) => take(file!, places),
  }),
  createCommand({
    name: 'check',
    help: 'restore FILE into a temporary directory, compare it with its manifest, and verify its database and ledger',
    words: { FILE: 'the backup' },
    flags: {
      secrets: {
        value: 'FILE',
        help: 'secrets.json of the installation (default: the one in DATA_DIR, else in .data)',
        parse: anyText,
      },
      against: { value: 'FILE', help: 'a checkpoint that the restored ledger must continue', parse: anyText },
      place: {
        value: 'NUMBER',
        help: 'the place that is in the backup, if core has several (docs/scale.md)',
        default: '0',
        parse: parsePlaceNumber,
      },
      schema: {
        value: 'NAME',
        help: 'the schema with the tables of that place',
        default: defaultSchema,
        parse: parseSchema,
      },
    },
    examples: [
      'wallet.tar',
      'wallet.tar --secrets /safe/secrets.json --against ledger-2026-11.checkpoint',
      'db-2.tar --place 1',
      'db-2.tar --place 2 --schema bucket_2',
    ],
    run: ({ secrets = inDataDir('secrets.json'), ...options }, [file]) => check(file!, secrets, options),
  }),
  createCommand({
    name: 'restore',
    help: 'unpack FILE into DIR, a new data directory for PostgreSQL 18, and replay archived write-ahead log',
    words: { FILE: 'the backup', DIR: 'the directory to create' },
    flags: {
      wal: {
        value: 'ARCHIVE',
        help: 'directory with the archived write-ahead log since the backup, to be replayed',
        parse: anyText,
      },
      'to-time': {
        value: 'TIME',
        help: 'replay commits up to this time, such as 2026-11-20T14:03:00Z (default: the whole archive)',
        parse: parseTime,
      },
      timeline: {
        value: 'NUMBER',
        help: 'timeline to restore, after an earlier restore or failover (default: the latest in the archive)',
        parse: parseTimeline,
      },
    },
    examples: [
      'wallet.tar /var/lib/postgresql/18/restored',
      'wallet.tar /var/lib/postgresql/18/restored --wal /archive --to-time 2026-11-20T14:03:00Z',
    ],
    run: ({ wal, 'to-time': time, timeline }, [file, directory]) =>
      restoreInto(file!, directory!, wal, { time, timeline }),
  }),
]).addHelpText(
  'after',
  `
take copies the database of npm start, or the one of BACKUP_DATABASE_URL, whose role needs the REPLICATION attribute.
It records the backup in the audit log, if it finds core as npm run admin does.
The archive has the format of pg_basebackup: check and restore also accept archives of pg_basebackup --format=tar
--wal-method=fetch --manifest-checksums=SHA256. It contains amounts and names; API secrets are encrypted in it. Keep
secrets.json, which decrypts them, in another place.

check compares every file with the manifest of the backup, starts PostgreSQL on the files, reads every page, compares
every index with its table, starts core, and verifies the ledger. It needs secrets.json and the program tar.

Examples:
  npm run backup -- take wallet.tar
  npm run backup -- check wallet.tar`,
)

function inDataDir(name: string): string {
  return join(dataDirOf(process.env), name)
}

async function take(file: string, places: number[] | undefined): Promise<void> {
  if (await stat(file).catch(() => null)) throw new Error(`${file} already exists: choose another name.`)
  await takeBaseBackup(process.env.BACKUP_DATABASE_URL || (await embeddedDatabaseUrl()), file)
  const { size } = await stat(file)
  await recordBackup({ name: basename(file), bytes: size, places })
  console.log(`Wrote the backup to ${file} (${(size / 2 ** 20).toFixed(1)} MiB). To check it, run:
npm run backup -- check ${file}`)
}

/** @throws UsageError if there is a target but no archive */
async function restoreInto(
  file: string,
  directory: string,
  wal: string | undefined,
  target: Omit<Target, 'wal'>,
): Promise<void> {
  if (wal === undefined && (target.time || target.timeline))
    throw new UsageError('--to-time and --timeline need --wal ARCHIVE: the archived write-ahead log since the backup.')
  const signal = abortOnInterrupt()
  await restore(file, directory, signal)
  if (wal === undefined) {
    console.log(`Restored the backup into ${directory}. Start the service on it, then run ledger verify.`)
    return
  }
  const { lastCommit, timeline } = await recover(directory, { ...target, wal }, signal).catch(async error => {
    await rm(directory, { recursive: true, force: true })
    throw error
  })
  console.log(`Restored the database into ${directory}, on timeline ${timeline}. ${
    lastCommit
      ? `The last transaction was committed at ${lastCommit.toISOString()}.`
      : 'No transaction was committed after the backup.'
  }
Start PostgreSQL on it with an empty archive, take a new backup, and run ledger verify --against a checkpoint.`)
}

function parseSchema(text: string): string {
  if (!hasUsableSchema(`postgres://x/?schema=${encodeURIComponent(text)}`))
    throw new Error(`must be a schema of core, such as bucket_1, not "${text}"`)
  return text
}

function parseTimeline(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`must be the number of a timeline, such as 1, not "${text}"`)
  return Number(text)
}

/** Tells core, so that `system status` shows when the last backup was taken. The backup is valid without that. */
async function recordBackup(backup: { name: string; bytes: number; places: number[] | undefined }): Promise<void> {
  try {
    const { urls, token } = await findCore(process.env)
    const core = createCoreClient({ url: urls, token })
    await core.system.recordBackup.mutate(backup).finally(() => core.close())
  } catch (error) {
    const isOfPlaces = domainErrorOf(error)?.code === 'S012'
    const cure = isOfPlaces ? 'name the places of this database with --places' : 'set CORE_URL and CORE_TOKEN'
    console.error(`Core was not told about the backup, so system status does not show it: ${cure}.`)
  }
}

/** The URL of the database of `npm start`, for its superuser. */
async function embeddedDatabaseUrl(): Promise<string> {
  const running = (await readJson(inDataDir('running.json'))) as { postgresPort?: number } | undefined
  if (!running?.postgresPort)
    throw new Error(
      `npm start is not running on ${inDataDir('')}: start it, set DATA_DIR to its directory, or set BACKUP_DATABASE_URL.`,
    )
  const { superuserPassword } = await readSecrets(inDataDir('secrets.json'))
  return `postgresql://postgres:${superuserPassword}@127.0.0.1:${running.postgresPort}/postgres`
}

await runProgram(program, process.argv.slice(2), ({ message }) => message)
