/** What the triggers of the other files call. */
export const guards = `
  create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% on % is refused: entries are immutable', tg_op, tg_table_name using errcode = 'restrict_violation';
  end $$;

  -- Each update of a signed row raises its revision by one, and nothing that has ended begins again.
  create function refuse_row_change() returns trigger language plpgsql as $$
  begin
    raise exception 'this update of % is refused: its rows keep their identity, count each change, and stay ended',
      tg_table_name using errcode = 'restrict_violation';
  end $$;
`
