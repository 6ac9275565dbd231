/** Functions for the triggers of the other files. They refuse a change. */
export const guards = `
  create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% on % is refused: entries are immutable', tg_op, tg_table_name using errcode = 'restrict_violation';
  end $$;

  -- For updates of signed rows that do not raise the revision by one, change the identity or restore a deleted row.
  create function refuse_row_change() returns trigger language plpgsql as $$
  begin
    raise exception 'this update of % is refused: revisions rise by one, and identity and deletion are final',
      tg_table_name using errcode = 'restrict_violation';
  end $$;
`
