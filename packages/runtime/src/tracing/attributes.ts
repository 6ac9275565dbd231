/**
 * All attributes that our spans may have; docs/traces.md has their meanings. Names without `wallet.` are of the semantic conventions of
 * OpenTelemetry. None of them is a secret, an amount, or text that a client can choose: whoever operates the collector may be
 * somebody else than whoever operates this service.
 */
export const spanAttributes = [
  'db.operation.batch.size',
  'db.system.name',
  'error.type',
  'http.request.method',
  'http.response.status_code',
  'http.route',
  'rpc.method',
  'rpc.system.name',
  'server.address',
  'server.port',
  'wallet.batch.calls',
  'wallet.batch.requests',
  'wallet.event.id',
  'wallet.event.position',
  'wallet.request.id',
  'wallet.transfer.id',
  'wallet.webhook.id',
  'wallet.workspace.id',
] as const

export type Attributes = { [Name in (typeof spanAttributes)[number]]?: string | number }

/** Where a request goes. The rest of a URL may contain a secret. */
export function serverAttributes({ hostname, port, protocol }: URL): Attributes {
  return { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) }
}
