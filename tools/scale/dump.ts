/** Restores the dump of a bucket into PostgreSQL without Citus, and verifies the ledger there. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createCoreClient, verifyLedger } from '@workspace-wallet/core-client'
import { query } from '../../cli/processes/database.ts'
import { pickFreePort } from '../../cli/processes/ports.ts'
import { startPostgres } from '../../cli/processes/postgres.ts'
import { startProgram } from '../../cli/processes/program.ts'
import type { Testbed } from '../chaos/testbed.ts'

const coreScript = fileURLToPath(new URL('../../services/core/src/main.ts', import.meta.url))
const superuserPassword = 'restored'

type Dump = { url: string; schema: string; program: string }

/** @returns violations */
export async function verifyDump(testbed: Testbed, { url, schema, program }: Dump): Promise<string[]> {
  // The coordinator reads the tables on their worker. INSERTs need no psql.
  const { stdout } = await promisify(execFile)(
    program,
    ['--schema', schema, '--inserts', '--rows-per-insert', '1000', url],
    {
      maxBuffer: 2 ** 30,
    },
  )
  const sql = stdout.replaceAll(/^\\.*$/gm, '')
  const dataDir = join(testbed.directory, 'restored')
  const postgres = await startPostgres({
    dataDir,
    port: 0,
    durable: false,
    superuserPassword,
    removeWhenStopped: [dataDir],
  })
  try {
    await query(postgres.url('postgres'), `create role wallet_service login password 'wallet_service'`)
    await query(postgres.url('postgres'), sql)
    const core = await startProgram(coreScript, {
      ...testbed.coreSecrets,
      NODE_ENV: 'production',
      CORE_PORT: String(await pickFreePort()),
      DATABASE_URL: `${postgres.url('postgres', 'wallet_service', 'wallet_service')}?schema=${schema}`,
      DATABASE_WRITERS: 'postgres',
      VERIFY_EVERY_MINUTES: '0',
    })
    try {
      const admin = createCoreClient({ url: core.url, token: testbed.adminToken })
      const { violations } = await verifyLedger(admin)
      await admin.close()
      return violations.map(each => `the restored bucket: ${JSON.stringify(each)}`)
    } finally {
      await core.stop()
    }
  } finally {
    await postgres.stop()
  }
}
