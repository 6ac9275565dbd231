/**
 * A trigger that rejects rows for which a condition on several columns is not true. Not a check constraint: domains.ts says why. Its
 * function sets no search path: the functions that write these tables do, and otherwise only their owner writes them.
 *
 * @param events when it is checked, such as `insert or update`
 * @param condition about the row `new`
 */
export const rowCheck = (table: string, events: string, condition: string) => `
  create function check_${table}() returns trigger language plpgsql as $$
  begin
    if (${condition.trim()}) is not true then
      raise exception '${table} % is refused: its columns contradict each other', new.id using errcode = 'check_violation';
    end if;
    return new;
  end $$;
  create trigger ${table}_is_checked before ${events} on ${table} for each row execute function check_${table}();
`
