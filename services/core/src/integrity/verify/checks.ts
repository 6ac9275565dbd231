import { type LedgerRule, listedViolations, type Uuid, type Violation } from '@workspace-wallet/contract'
import type { Snapshot, TextRow } from '../../database/snapshot.ts'
import { type Findings, publicId } from './findings/findings.ts'

/**
 * A check that needs no key, so PostgreSQL does it. The statement returns the rows that break its rule; its one parameter
 * is the workspace, null for all. Sums with damaged numbers are numeric, so that they cannot overflow.
 */
export type Check = { rule: LedgerRule; sql: string; violation: (row: TextRow) => Omit<Violation, 'rule'> }

export async function runChecks(
  snapshot: Snapshot,
  workspaceId: Uuid<'workspace'> | null,
  findings: Findings,
  checks: readonly Check[],
): Promise<void> {
  for (const { rule, sql, violation } of checks) {
    const rows = await snapshot.rows(`select *, count(*) over () from (${sql}) broken limit ${listedViolations}`, [
      workspaceId,
    ])
    for (const row of rows) findings.add({ rule, ...violation(row) })
    findings.addUnlisted(rule, Number(rows[0]?.at(-1) ?? 0) - rows.length)
  }
}

/** Compares a counter in the rows of ledgers with the number of rows that it counts. `where`: which rows of the table it counts. */
export function ledgerCount(
  rule: LedgerRule,
  { counter, table, where = 'true', what }: { counter: string; table: string; where?: string; what: string },
): Check {
  return {
    rule,
    sql: `
      select l.workspace_id, l.${counter}, coalesce(r.found, 0)
      from {here}.ledger l left join (
        select workspace_id, count(*) as found from {here}.${table}
        where ${where} and ($1::uuid is null or workspace_id = $1)
        group by workspace_id) r on r.workspace_id = l.workspace_id
      where ($1::uuid is null or l.workspace_id = $1) and l.${counter} is distinct from coalesce(r.found, 0)
      order by l.workspace_id`,
    violation: ([workspace, counted, found]) => ({
      message: `its ledger's ${counter} is ${counted}, but it has ${found} ${what}`,
      ids: workspaceIds(workspace),
    }),
  }
}

type Column = TextRow[number] | undefined

export function workspaceIds(workspace: Column) {
  return { workspaceId: publicId('workspace', workspace ?? null) }
}

export function rowIds(kind: 'event' | 'hold' | 'transfer' | 'wallet' | 'webhook', workspace: Column, id: Column) {
  return { ...workspaceIds(workspace), [`${kind}Id`]: publicId(kind, id ?? null) }
}
