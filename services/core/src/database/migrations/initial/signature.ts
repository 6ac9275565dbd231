/**
 * The columns of every row that decides about money or access: how often it was written, and a MAC over all that decides
 * (database/signed-rows.ts). The count only rises (see guards.ts), so an earlier row cannot be put back with its MAC.
 */
export const signature = `
    revision bigint not null check (revision > 0),
    mac bytea not null`
