import pg from 'pg'
import type { TestDatabase } from './database.ts'

/** A node of a plan, as the module auto_explain of PostgreSQL logs it. */
export type PlanNode = { [field: string]: unknown; Plans?: PlanNode[] }

/**
 * Calls `onPlan` with the plan of each statement that this process runs from now on, on connections whose database
 * `explainStatements` has prepared: also of connections of the ORM, which only their notices tell apart.
 */
export function readPlans(onPlan: (plan: { 'Query Text': string; Plan: PlanNode }) => void): void {
  const { connect } = pg.Client.prototype
  pg.Client.prototype.connect = function (this: pg.Client, ...args: Parameters<typeof connect>) {
    this.on('notice', ({ message = '' }) => {
      const [, json] = message.match(/plan:\n(.*)$/s) ?? []
      if (json) onPlan(JSON.parse(json))
    })
    return connect.apply(this, args)
  } as typeof connect
}

/** The blocks that a statement has read. */
export function blocksOf(plan: PlanNode): number {
  return Number(plan['Shared Hit Blocks'] ?? 0) + Number(plan['Shared Read Blocks'] ?? 0)
}

/**
 * Makes PostgreSQL send the plan of each statement of the service's role, with the rows and blocks that it has read, as a notice.
 *
 * @param owner a connection of the owner of the database
 * @param nested also those of statements in functions and triggers
 */
export async function explainStatements(
  owner: pg.Client,
  { ownerUrl }: Pick<TestDatabase, 'ownerUrl'>,
  { nested }: { nested: boolean },
): Promise<void> {
  const name = pg.escapeIdentifier(new URL(ownerUrl).pathname.slice(1))
  for (const [setting, value] of Object.entries({
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_buffers': 'on',
    'auto_explain.log_timing': 'off',
    'auto_explain.log_nested_statements': nested ? 'on' : 'off',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_format': 'json',
    'auto_explain.log_level': 'notice',
  }))
    await owner.query(`alter role wallet_service in database ${name} set ${setting} = ${pg.escapeLiteral(value)}`)
}
