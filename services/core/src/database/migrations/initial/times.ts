/**
 * A check that these columns, or the value of a domain, have times that every program can show: 1970 to 9999. PostgreSQL's own range is
 * larger, and so is infinity. Null passes.
 */
export const shownTimes = (...columns: string[]) =>
  `check (least(${columns}) >= '1970-01-01T00:00:00Z' and greatest(${columns}) <= '9999-12-31T23:59:59.999Z')`
