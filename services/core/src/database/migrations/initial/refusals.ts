import { bounded } from './bounded.ts'
import { shownTimes } from './times.ts'

/**
 * Refused calls, which gateways report. They decide nothing, so they are not signed. Whoever has the service's role can store what no
 * gateway has reported; the constraints keep such a row from making the list of all fail.
 */
export const refusals = `
  create table refusal (
    id bigint generated always as identity primary key check (id between 1 and 9007199254740991),
    received_at timestamptz(3) not null default clock_timestamp(),
    at timestamptz(3) not null,
    gateway text not null,
    method text not null,
    route text not null,
    code text not null,
    step text not null,
    detail text not null,
    api_key text,
    address text not null,
    request_id text not null,
    is_signed boolean not null,
    ${shownTimes('received_at', 'at')},
    -- 300 characters, of up to four bytes each.
    ${bounded(1200, 'detail')},
    ${bounded(256, 'gateway', 'method', 'route', 'code', 'step', 'api_key', 'address', 'request_id')}
  );
  create index refusal_oldest on refusal (is_signed, id);
  create index refusal_api_key on refusal (api_key, id);
  create index refusal_request_id on refusal (request_id, id);
  create index refusal_code on refusal (code, id);
  create index refusal_address on refusal (address, id);
`
