import { Migration } from '@mikro-orm/migrations'

/** Marks for the changes that gateways follow, and ways to look into the audit. */
export class Migration0002Access extends Migration {
  override up(): void {
    this.addSql(accessChange)
    this.addSql(audit)
  }
}

const accessChange = `
  -- A name for each access revision. A database that was restored counts the same numbers again; marks do not repeat.
  create table access_change (
    revision bigint primary key,
    mark uuid not null default gen_random_uuid()
  );
  insert into access_change (revision) select revision from access_revision;
`

const audit = `
  create index audit_actor on audit (actor, id);
  create index audit_target on audit (target, id);
  create index audit_at on audit (at);
`
