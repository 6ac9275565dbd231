import { createSecretKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import {
  idFromUuid,
  ledgerRules,
  mintId,
  serialization,
  type Uuid,
  uuidFromId,
  type VerifyReport,
} from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Snapshot } from '../../../services/core/src/database/snapshot.ts'
import { type Baseline, BaselineDigest } from '../../../services/core/src/integrity/verify/baseline.ts'
import type { Findings } from '../../../services/core/src/integrity/verify/findings/findings.ts'
import { verifyLedger } from '../../../services/core/src/integrity/verify/verify.ts'
import { connect, execute, schema, testPlace, urlOf } from '../database.ts'
import { signRows } from '../sign-rows.ts'
import { type System, startSystem } from '../system.ts'
import { type Books, keepBooks } from './books.ts'
import { findingsInRows } from './rows.ts'

// Core writes one ledger for each test file. Each test damages a copy of its database as the owner of the tables, without triggers
// and foreign keys, and compares the complete report, so that a false finding fails the test too.
const chainKey = randomBytes(32)
let system: System
export let books: Books

/** Lets core write `books` before the tests of a file. */
export function useBooks(): void {
  beforeAll(async () => {
    system = await startSystem({ gateways: 0, coreEnvironment: { LEDGER_CHAIN_KEY: chainKey.toString('base64') } })
    books = await keepBooks(system)
    // A database can be copied while nobody is connected to it.
    for (const core of system.cores) await core.stop()
  })
  afterAll(() => system.stop())
}

/** The IDs of a transfer, a wallet and a hold that core did not create. */
export const orphan = mintId('transfer')
export const stray = mintId('wallet')
export const strange = mintId('hold')
/** A transfer with a UUID that core generates for events only. */
export const likeAnEvent = idFromUuid('transfer', uuidFromId('event', mintId('event')) as string as Uuid<'transfer'>)

/** `signed`: the table whose rows get genuine MACs afterwards, so that only other rules can report the damage. */
export type Damage = {
  what: string
  sql: () => string
  signed?: 'hold' | 'spending_limit' | 'wallet' | 'webhook'
  expected: string[]
}

/** A test for each damage: it is reported with its rule and place, and nothing else is, also by an incremental verification. */
export function testEach(damages: readonly Damage[]): void {
  test.each(damages)('$what', ({ sql, signed, expected }) =>
    inCopy(async ({ ownerUrl, serviceUrl }) => {
      await damage(ownerUrl, sql())
      if (signed) await sign(ownerUrl, signed)
      // An incremental verification that begins with nothing reads the same rows by other statements, and checks definitions in the
      // same way.
      const isOfDefinitions = expected.some(violation => violation.startsWith('database-'))
      const reports = isOfDefinitions
        ? [await verify(serviceUrl), await verify(serviceUrl, { since: new BaselineDigest().end() })]
        : await verifyRowsInBothWays(serviceUrl)
      for (const report of reports) {
        expect(report.ok).toBe(false)
        expect(named(report)).toEqual(inOrderOfRules(expected))
        // Whatever is damaged, the report reaches the operator.
        expect(serialization.deserialize(serialization.serialize(report))).toEqual(report)
      }
    }),
  )
}

/** Resets rows to genuine earlier ones, as the owner of the tables can. */
export const reset = (table: string, where = 'true') =>
  `delete from ${table} where ${where}; insert into ${table} select * from kept.${table} where ${where};`

export async function verify(
  serviceUrl: string,
  {
    key = createSecretKey(chainKey),
    workspaceId = null,
    since,
  }: { key?: KeyObject; workspaceId?: string | null; since?: string } = {},
): Promise<VerifyReport> {
  for await (const event of verifyLedger({
    ...(since !== undefined && { since }),
    databaseUrl: serviceUrl,
    place: testPlace,
    chainKey: key,
    writers: ['postgres'],
    workspaceId: workspaceId === null ? null : uuidFromId('workspace', workspaceId),
    checkpoint: null,
  }))
    if (event.kind === 'result') return event.report
  throw new Error('the verification gave no result')
}

/** Checks the rows only: the catalog differs on purpose. */
export async function verifyRows(service: pg.Client): Promise<Findings> {
  const findings = await findRows(await Snapshot.begin(service, schema), null)
  await service.query('rollback')
  return findings
}

/** Without the definitions, which a damage of rows does not change: their check takes most of the time. */
async function verifyRowsInBothWays(databaseUrl: string): Promise<Findings[]> {
  const snapshot = await Snapshot.open({ databaseUrl, chainKey: createSecretKey(chainKey) }, 'core verify')
  try {
    return [await findRows(snapshot, null), await findRows(snapshot, new Map())]
  } finally {
    await snapshot.close()
  }
}

const findRows = (snapshot: Snapshot, baseline: Baseline | null) =>
  findingsInRows(snapshot, { chainKey: createSecretKey(chainKey), place: testPlace }, baseline)

type Copy = { ownerUrl: string; serviceUrl: string }

/** Runs a test on a copy of the database. */
export async function inCopy<Result>(use: (copy: Copy) => Promise<Result>): Promise<Result> {
  const { ownerUrl, serviceUrl } = system.database
  const adminUrl = urlOf(ownerUrl, 'postgres')
  const name = `copy_${randomUUID().replaceAll('-', '')}`
  await execute(adminUrl, `create database ${name} template ${new URL(ownerUrl).pathname.slice(1)}`)
  try {
    return await use({ ownerUrl: urlOf(ownerUrl, name), serviceUrl: urlOf(serviceUrl, name) })
  } finally {
    await execute(adminUrl, `drop database ${name} with (force)`)
  }
}

async function sign(ownerUrl: string, table: NonNullable<Damage['signed']>): Promise<void> {
  const client = await connect(ownerUrl)
  try {
    await client.query('set session_replication_role = replica')
    await signRows(client, chainKey.toString('base64'), table)
  } finally {
    await client.end()
  }
}

export const damage = (ownerUrl: string, sql: string) =>
  execute(ownerUrl, `set session_replication_role = replica; ${sql}`)

/** Violations with the names of this file: "flow-chain b#2", "batch rent", "journal-chain books@3", "workspace-sum books USD". */
export function named({ violations }: Pick<VerifyReport, 'violations'>): string[] {
  const names = new Map(
    Object.entries({
      ...books.workspaces,
      ...books.wallets,
      ...books.transfers,
      ...books.holds,
      orphan,
      stray,
      strange,
      likeAnEvent,
    }).map(([name, id]) => [id, name]),
  )
  const nameOf = (id: unknown) => names.get(id as string) ?? id
  return violations.map(({ rule, ids }) => {
    const { workspaceId, walletId, transferId, holdId, sequence, position, currency } = ids
    const { object, action, userId, apiKey, webhookId, limit } = ids
    if (object) return `${rule} ${object}`
    if (action ?? userId ?? apiKey) return `${rule} ${action ?? userId ?? 'key'}`
    if (webhookId) return `${rule} webhook`
    if (limit && !currency)
      return `${rule} ${`${limit}`.startsWith(system.apiKey) ? 'key' : nameOf(`${limit}`.split(' ')[0])}`
    if (walletId) return `${rule} ${nameOf(walletId)}${sequence === undefined ? '' : `#${sequence}`}`
    if (holdId) return `${rule} ${nameOf(holdId)}`
    if (transferId) return `${rule} ${nameOf(transferId)}`
    if (position) return `${rule} ${nameOf(workspaceId)}@${position}`
    return [rule, nameOf(workspaceId), currency].filter(each => each !== undefined).join(' ')
  })
}

export function inOrderOfRules(violations: string[]): string[] {
  const rules = Object.keys(ledgerRules)
  const placeOf = (violation: string) => rules.indexOf(violation.split(' ')[0]!)
  return violations.toSorted((a, b) => placeOf(a) - placeOf(b))
}

// SQL literals.
export const wallet = (name: keyof Books['wallets']) => `'${uuidFromId('wallet', books.wallets[name])}'`
export const transfer = (name: keyof Books['transfers']) => `'${uuidFromId('transfer', books.transfers[name])}'`
export const hold = (name: keyof Books['holds']) => `'${uuidFromId('hold', books.holds[name])}'`
export const workspace = (name: keyof Books['workspaces']) => `'${uuidFromId('workspace', books.workspaces[name])}'`
/** The limit of a wallet; the other one is that of a key. */
export const ofWallet = `(subject like 'wallet:%')`
/** Changes columns of one transfer. */
export const change = (name: keyof Books['transfers'], columns: string) =>
  `update transfer set ${columns} where id = ${transfer(name)};`
export const changeHold = (name: keyof Books['holds'], columns: string) =>
  `update hold set ${columns} where id = ${hold(name)};`
/** A condition for one journal entry. */
export const entry = (name: keyof Books['workspaces'], position: number) =>
  `workspace_id = ${workspace(name)} and position = ${position}`
/** The unique indexes of transfers other than the primary key, and bizIds. */
export const uniqueness = ['position', 'source', 'target'].map(name => `transfer_${name}`)
