/** A PostgreSQL database for each test file: a copy of one that the migrations were run on once (global.ts). */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

export const templateDatabase = 'wallet_template'

/** How to reach the server that global.ts has started: URLs of any database on it. */
export interface DatabaseServer {
  ownerUrl: string
  serviceUrl: string
}

export interface TestDatabase {
  /** As the role that owns the schema, a superuser. */
  ownerUrl: string
  /** As the role that the service runs under. */
  serviceUrl: string
  drop(): Promise<void>
}

export async function createTestDatabase(): Promise<TestDatabase> {
  const server = inject('databaseServer')
  const name = `test_${randomUUID().replaceAll('-', '')}`
  const adminUrl = urlOf(server.ownerUrl, 'postgres')
  await execute(adminUrl, `create database ${name} template ${templateDatabase}`)
  return {
    ownerUrl: urlOf(server.ownerUrl, name),
    serviceUrl: urlOf(server.serviceUrl, name),
    drop: () => execute(adminUrl, `drop database if exists ${name} with (force)`),
  }
}

/** The same server and role, another database. */
export function urlOf(url: string, database: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href
}

export async function execute(url: string, sql: string): Promise<void> {
  await query(url, sql)
}

export async function query(url: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
  const client = await connect(url)
  try {
    return (await client.query(sql, values)).rows
  } finally {
    await client.end()
  }
}

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}
