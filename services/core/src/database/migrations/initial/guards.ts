/** Functions for the triggers of the other files. They reject a change. */
export const guards = `
  create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% on % is refused: entries are immutable', tg_op, tg_table_name using errcode = 'restrict_violation';
  end $$;

  -- For signed rows that do not begin with revision 1, and for updates of them that do not raise it by one, change the identity
  -- or restore a deleted row.
  create function refuse_row_change() returns trigger language plpgsql as $$
  begin
    raise exception 'this % of % is refused: revisions begin with 1 and rise by one, and identity and deletion are final',
      lower(tg_op), tg_table_name using errcode = 'restrict_violation';
  end $$;
`
