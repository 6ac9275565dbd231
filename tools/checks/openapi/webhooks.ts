import { eventTypes } from '@workspace-wallet/contract'
import { eventDescriptions, eventExamples } from '../../../gateway/src/api/event-examples.ts'
import { eventAnswers } from '../../../gateway/src/api/records.ts'
import { refTo } from './components.ts'

const header = (name: string, description: string, schema: object) => ({
  in: 'header',
  name,
  required: true,
  description,
  schema,
})

/** The headers of Standard Webhooks 1.0. */
const headers = [
  header('webhook-id', 'The `eventId`: the same in each attempt. Use it to recognize what you have processed.', {
    type: 'string',
  }),
  header('webhook-timestamp', 'When the delivery was signed, in seconds since the Unix epoch.', { type: 'string' }),
  header(
    'webhook-signature',
    '`v1,` and the Base64 of the HMAC-SHA256 of `webhook-id`, `webhook-timestamp` and the body, joined by dots. During a rotation two, separated by a space.',
    { type: 'string' },
  ),
]

/** What the service sends to webhooks: an entry for each type of event. */
export function webhooks(): Record<string, object> {
  return Object.fromEntries(eventTypes.map(type => [type, { post: delivery(type) }]))
}

function delivery(type: (typeof eventTypes)[number]) {
  return {
    operationId: `on${type.replace(/(?:^|\.)(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: ['Event types'],
    summary: type,
    description: eventDescriptions[type],
    // The receiver checks the signature: it has no API key.
    security: [],
    parameters: headers,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: refTo(eventAnswers[type]), example: eventExamples[type] } },
    },
    responses: {
      '2XX': { description: 'The event is delivered. Respond within 15 seconds.' },
      '410': { description: 'The webhook is paused at once.' },
      default: { description: 'The delivery failed. It is repeated, and later events wait.' },
    },
  }
}
