import { plainArray, type Queryable, run, statement } from '../database/statement.ts'

const tables = {
  workspace: 'workspace',
  apiKey: 'api_key',
  transfer: 'transfer',
  wallet: 'wallet',
  webhook: 'webhook',
} as const
/** Objects that name their place. */
export type PlacedKind = keyof typeof tables

const findStatement = (kind: PlacedKind) =>
  statement<{ id: string }>(`find-placed-${tables[kind]}`, `select id from ${tables[kind]} where id = any ($1::uuid[])`)

const statements: Record<PlacedKind, ReturnType<typeof findStatement>> = {
  workspace: findStatement('workspace'),
  apiKey: findStatement('apiKey'),
  transfer: findStatement('transfer'),
  wallet: findStatement('wallet'),
  webhook: findStatement('webhook'),
}

/** Those of these objects that a place has. */
export function findPlaced(db: Queryable, kind: PlacedKind, uuids: readonly string[]): Promise<{ id: string }[]> {
  return run(db, statements[kind], [plainArray(uuids)])
}
