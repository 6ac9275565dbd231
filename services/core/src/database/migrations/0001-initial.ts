import { Migration } from '@mikro-orm/migrations'
import { access } from './initial/access.ts'
import { audit } from './initial/audit.ts'
import { guards } from './initial/guards.ts'
import { ledgerRows } from './initial/ledger-rows.ts'
import { posting } from './initial/posting.ts'
import { transfers } from './initial/transfers.ts'
import { verification } from './initial/verification.ts'
import { wallets } from './initial/wallets.ts'
import { workspaces } from './initial/workspaces.ts'

/**
 * The whole schema of the first release. What the ledger promises is enforced here, by PostgreSQL itself: a bug in the
 * code above, or a person with the service's role, cannot break it.
 */
export class Migration0001Initial extends Migration {
  override up(): void {
    for (const part of [guards, workspaces, access, wallets, transfers, ledgerRows, posting, audit, verification])
      this.addSql(part)
  }
}
