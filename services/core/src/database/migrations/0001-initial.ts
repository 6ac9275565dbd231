import type { MigrationObject } from '@mikro-orm/core'
import { Migration } from '@mikro-orm/migrations'
import { access } from './initial/access.ts'
import { audit } from './initial/audit.ts'
import { domains } from './initial/domains.ts'
import { guards } from './initial/guards.ts'
import { holdChanges } from './initial/hold-changes.ts'
import { holds } from './initial/holds.ts'
import { instances } from './initial/instances.ts'
import { journal } from './initial/journal.ts'
import { ledgerRows } from './initial/ledger-rows.ts'
import { limits } from './initial/limits.ts'
import { monitoring } from './initial/monitoring.ts'
import { moves } from './initial/moves.ts'
import { operators } from './initial/operators.ts'
import { posting } from './initial/posting.ts'
import { refusals } from './initial/refusals.ts'
import { transfers } from './initial/transfers.ts'
import { verification } from './initial/verification.ts'
import { wallets } from './initial/wallets.ts'
import { webhooks } from './initial/webhooks.ts'
import { workspaces } from './initial/workspaces.ts'
import { statementsOf } from './statements.ts'

/**
 * The whole schema of the first release. PostgreSQL itself enforces the ledger's invariants, so neither a bug in core nor
 * somebody with the service role can break them.
 *
 * @param inSchema puts the name of the schema into a statement
 */
export const initialMigration = (inSchema: (sql: string) => string): MigrationObject['class'] =>
  class extends Migration {
    override up(): void {
      const ledger = [wallets, holds, transfers, journal, ledgerRows, holdChanges, limits, posting]
      for (const part of [
        domains,
        guards,
        workspaces,
        access,
        operators,
        ...ledger,
        webhooks,
        moves,
        audit,
        verification,
        monitoring,
        refusals,
        instances,
      ])
        for (const sql of statementsOf(inSchema(part))) this.addSql(sql)
    }
  }
