import { shownTimes } from './times.ts'

/**
 * Types of the columns of ledgers, wallets, holds, transfers, limits and the journal, with their checks. They are domains because
 * PostgreSQL parses and plans the check constraints of a table again for every statement that writes to it, and those of a domain once
 * in each session: with check constraints, a single transfer took 1.4 times the CPU time of PostgreSQL. Triggers check what concerns several
 * columns (row-check.ts). The lengths are bounded for the reason that bounded.ts gives.
 */
export const domains = `
  create domain bounded_text as text check (octet_length(value) <= 1024);
  create domain bounded_bytes as bytea check (octet_length(value) <= 1024);
  -- Longer than any MAC.
  create domain row_mac as bytea check (octet_length(value) <= 64);
  -- Positions, sequences and revisions.
  create domain positive_bigint as bigint check (value > 0);
  -- 38 digits at most, as in the contract.
  create domain positive_amount as numeric check (value > 0 and value < 1e38 and scale(value) <= 18);
  -- Balances and other sums of amounts: fewer than 2^63 of them, because positions are bigint. Without a bound, a numeric of a few
  -- bytes has up to 131,072 digits as text, which core would parse before it could check a MAC. Functions take plain numerics: what
  -- they write is checked by its column. The bounds also exclude NaN, which PostgreSQL sorts above Infinity.
  create domain bounded_amount as numeric check (value > -1e57 and value < 1e57 and scale(value) <= 18);
  create domain bounded_time as timestamptz(3) ${shownTimes('value')};
  create domain transfer_type as text check (value in ('TRANSFER', 'DEPOSIT', 'WITHDRAWAL'));
  create domain wallet_kind as text check (value in ('CUSTOMER', 'EXTERNAL'));
  create domain wallet_status as text check (value in ('ACTIVE', 'FROZEN', 'CLOSED'));
  create domain freezer as text check (value in ('WORKSPACE', 'OPERATOR'));
  create domain hold_status as text check (value in ('OPEN', 'CAPTURED', 'RELEASED', 'EXPIRED'));
  create domain journal_type as text check (value in ('hold.created', 'hold.released', 'hold.expired', 'wallet.created',
    'wallet.frozen', 'wallet.unfrozen', 'wallet.closed'));
  create domain ledger_status as text check (value in ('OPEN', 'CLOSED', 'HALTED', 'MOVING'));
`
