/**
 * The columns that sign a row that decides about money or access: a revision, and a MAC that covers it (see
 * database/tables/table.ts). The revision only rises (see guards.ts), so an earlier row cannot be restored with its MAC.
 */
export const signature = `
    revision bigint not null check (revision > 0),
    -- Longer than any MAC, so that nobody makes core read a huge one.
    mac bytea not null check (octet_length(mac) <= 64)`
