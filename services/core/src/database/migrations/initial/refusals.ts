/** Refused calls, which gateways report. They decide nothing, so they are not signed. */
export const refusals = `
  create table refusal (
    id bigint generated always as identity primary key,
    received_at timestamptz(3) not null default clock_timestamp(),
    at timestamptz(3) not null,
    gateway text not null,
    method text not null,
    route text not null,
    code text not null,
    step text not null,
    detail text not null check (length(detail) <= 300),
    api_key text check (length(api_key) <= 64),
    address text not null check (length(address) <= 64),
    request_id text not null check (length(request_id) <= 64),
    is_signed boolean not null
  );
  create index refusal_oldest on refusal (is_signed, id);
  create index refusal_api_key on refusal (api_key, id);
  create index refusal_request_id on refusal (request_id, id);
  create index refusal_code on refusal (code, id);
  create index refusal_address on refusal (address, id);
`
