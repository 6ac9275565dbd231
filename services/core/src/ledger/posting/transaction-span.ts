import { SpanKind, type SpanOptions } from '@workspace-wallet/runtime/tracing'
import type { LedgerRequest } from '../decide/requests.ts'

/** The span of a transaction that posts these requests. */
export function transactionSpan(requests: readonly LedgerRequest[]): SpanOptions {
  const attributes = { 'db.system.name': 'postgresql', 'db.operation.batch.size': requests.length }
  return { kind: SpanKind.CLIENT, attributes }
}
