/**
 * The columns that sign a row that decides about money or access: a revision, and a MAC that covers it (see
 * database/tables/table.ts). The revision only rises (see guards.ts), so an earlier row cannot be restored with its MAC.
 */
export const signature = `
    revision positive_bigint not null,
    mac row_mac not null`
