import { execute, type TestDatabase } from './database.ts'

/** Hides the changes of keys that an action makes from the polls of gateways and cores, as the owner of the tables can, and leaves no trace. */
export async function hidingAccessChanges(
  { ownerUrl }: Pick<TestDatabase, 'ownerUrl'>,
  action: () => Promise<unknown>,
): Promise<void> {
  const trigger = 'create trigger hides_changes before update on %I for each row execute function hide_change()'
  await execute(
    ownerUrl,
    `create function hide_change() returns trigger language plpgsql as $$
     begin
       new.access_revision := old.access_revision;
       return new;
     end $$;
     ${onKeys(trigger)}`,
  )
  await action()
  await execute(ownerUrl, `${onKeys('drop trigger hides_changes on %I')}; drop function hide_change()`)
}

/** Runs a command on the table of keys. In Citus, that is a shard with a number, which is hidden otherwise. */
function onKeys(command: string): string {
  return `
    set citus.override_table_visibility = off;
    do $$ begin
      execute (select format('${command}', relname) from pg_class
        where relnamespace = current_schema::regnamespace and relkind = 'r' and relname ~ '^api_key(_\\d+)?$'
        order by length(relname) desc limit 1);
    end $$`
}
