import type { Delivery, LeasedWebhook } from '@workspace-wallet/contract'
import { endSpan, isTracing, type Span, SpanKind, serverAttributes, startSpan } from '@workspace-wallet/runtime/tracing'
import type { AttemptOutcome } from './attempt.ts'

/**
 * The span of an attempt, which begins a trace: events do not keep the trace of the request that caused them. The ID of the event of a
 * transfer has the ID of the transfer after its prefix.
 */
export function startDeliverySpan(webhook: LeasedWebhook, { position, headers }: Delivery): Span | undefined {
  if (!isTracing()) return undefined
  const { webhookId, workspaceId } = webhook
  const url = URL.parse(webhook.url)
  return startSpan('deliver event', {
    kind: SpanKind.CLIENT,
    parent: undefined,
    attributes: {
      'http.request.method': 'POST',
      ...(url && serverAttributes(url)),
      'wallet.workspace.id': workspaceId,
      'wallet.webhook.id': webhookId,
      'wallet.event.id': headers['webhook-id']!,
      'wallet.event.position': position,
    },
  })
}

export function endDeliverySpan(span: Span | undefined, { result, status }: AttemptOutcome): void {
  if (!span) return
  if (status !== null) span.setAttribute('http.response.status_code', status)
  endSpan(span, result === 'success' ? null : result)
}
