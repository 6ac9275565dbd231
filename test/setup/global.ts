/**
 * Starts PostgreSQL, with a migrated template database, and Redis, once per test run. Both end with this process, however
 * it ends, and remove their files.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { type Postgres, startPostgres } from '../../cli/processes/postgres.ts'
import { startRedis } from '../../cli/processes/redis.ts'
import { type DatabaseServer, execute, templateDatabase, urlOf } from './database.ts'

declare module 'vitest' {
  interface ProvidedContext {
    databaseServer: DatabaseServer
    redisUrl: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const runDir = await mkdtemp(join(tmpdir(), 'wallet-test-'))
  const dataDir = join(runDir, 'postgres')
  // The tests start hundreds of processes.
  const compileCache = join(runDir, 'compiled')
  process.env.NODE_COMPILE_CACHE = compileCache
  const stops: (() => Promise<unknown>)[] = [() => rm(runDir, { recursive: true, force: true })]
  const stopAll = async () => {
    for (const stop of stops.toReversed()) await stop()
  }
  try {
    // PostgreSQL and the programs of `npm start` may have to run as another user.
    await chmod(runDir, 0o755)
    await mkdir(compileCache)
    await chmod(compileCache, 0o777)
    const redis = process.env.REDIS_URL ? undefined : await startRedis()
    if (redis) stops.push(redis.stop)
    const postgres = await startPostgres({
      dataDir,
      port: 0,
      durable: false,
      superuserPassword: randomUUID(),
      // Each test file has its own pools.
      settings: { max_connections: '500', max_prepared_transactions: '10' },
      removeWhenStopped: [runDir],
    })
    stops.push(postgres.stop)
    project.provide('redisUrl', redis?.url ?? process.env.REDIS_URL!)
    project.provide('databaseServer', await migrateTemplate(postgres, dataDir, project.config.env?.TEST_SCHEMA))
  } catch (error) {
    await stopAll()
    throw error
  }
  return stopAll
}

async function migrateTemplate(postgres: Postgres, dataDir: string, schema?: string): Promise<DatabaseServer> {
  const parameter = schema ? `?schema=${schema}` : ''
  const server = {
    ownerUrl: postgres.url('postgres') + parameter,
    serviceUrl: postgres.url('postgres', 'wallet_service', randomUUID()) + parameter,
    dataDir,
  }
  const adminUrl = urlOf(server.ownerUrl, 'postgres')
  await execute(adminUrl, `create database ${templateDatabase}`)
  const script = fileURLToPath(new URL('../../services/core/src/migrate.ts', import.meta.url))
  await promisify(execFile)(process.execPath, [script], {
    env: {
      ...process.env,
      MIGRATION_DATABASE_URL: urlOf(server.ownerUrl, templateDatabase),
      DATABASE_URL: urlOf(server.serviceUrl, templateDatabase),
    },
  })
  // PostgreSQL refuses to copy a database that has connections, even one of autovacuum.
  await execute(adminUrl, `alter database ${templateDatabase} is_template true allow_connections false`)
  return server
}
