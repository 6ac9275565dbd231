import { execute, type TestDatabase } from './database.ts'

/** Hides the changes of keys that an action makes from the polls of gateways and cores, as the owner of the tables can, and leaves no trace. */
export async function hidingAccessChanges(
  { ownerUrl }: Pick<TestDatabase, 'ownerUrl'>,
  action: () => Promise<unknown>,
): Promise<void> {
  await execute(
    ownerUrl,
    `create function hide_change() returns trigger language plpgsql as $$
     begin
       new.access_revision := old.access_revision;
       return new;
     end $$;
     create trigger hides_changes before update on api_key for each row execute function hide_change()`,
  )
  await action()
  await execute(ownerUrl, 'drop trigger hides_changes on api_key; drop function hide_change()')
}
