import { z } from 'zod'
import { parsed, serverUrl, wholeNumber } from '../environment.ts'

/**
 * The environment variables of OpenTelemetry that our programs know. Those of certificates and compression of the exporter
 * (`OTEL_EXPORTER_OTLP_CERTIFICATE` and others) are read by the exporter itself.
 */
export const tracingVariables = {
  OTEL_BSP_MAX_QUEUE_SIZE: wholeNumber(16, 100_000)
    .default(4_096)
    .describe('Spans that may wait to be sent to the collector. Further ones are dropped'),
  OTEL_BSP_SCHEDULE_DELAY: wholeNumber(10, 60_000)
    .default(5_000)
    .describe('How often spans are sent to the collector, in milliseconds'),
  OTEL_EXPORTER_OTLP_ENDPOINT: serverUrl('http', 'https')
    .optional()
    .describe(
      'URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://collector:4318. Spans are sent to its path v1/traces. Without it, nothing is traced. See docs/traces.md',
    ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: serverUrl('http', 'https')
    .optional()
    .describe('The whole URL that spans are sent to, instead of OTEL_EXPORTER_OTLP_ENDPOINT'),
  OTEL_EXPORTER_OTLP_HEADERS: parsed(parsePairs)
    .optional()
    .describe('Comma-separated name=value headers for the collector, percent-encoded, such as a token'),
  OTEL_EXPORTER_OTLP_TIMEOUT: wholeNumber(100, 60_000)
    .default(2_500)
    .describe('How long spans may take to be sent, in milliseconds, retries included'),
  OTEL_RESOURCE_ATTRIBUTES: parsed(parsePairs)
    .optional()
    .describe('Comma-separated name=value attributes of this program, percent-encoded'),
  OTEL_SERVICE_NAME: z
    .string()
    .optional()
    .describe('The name of this program in traces. Default: wallet-core, wallet-gateway or wallet-courier'),
  OTEL_TRACES_SAMPLER: z
    .enum(
      ['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'],
      'must be parentbased_always_on, parentbased_always_off or parentbased_traceidratio',
    )
    .default('parentbased_always_on')
    .describe(
      'Which traces are recorded that begin here: parentbased_always_on, parentbased_always_off, or parentbased_traceidratio: the share in OTEL_TRACES_SAMPLER_ARG',
    ),
  OTEL_TRACES_SAMPLER_ARG: parsed(parseShare)
    .default(1)
    .describe('The share for parentbased_traceidratio, from 0 to 1'),
}

export type TracingSettings = z.infer<z.ZodObject<typeof tracingVariables>>

/** Where spans are sent; undefined if nothing is traced. */
export function tracesUrlOf(settings: TracingSettings): string | undefined {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url, OTEL_EXPORTER_OTLP_ENDPOINT: base } = settings
  return url ?? base?.replace(/\/*$/, '/v1/traces')
}

/** The format of W3C Baggage, without properties. The message of its error does not contain a value: it may be a secret. */
function parsePairs(text: string): Record<string, string> {
  const entries = text.split(',').filter(entry => entry.trim() !== '')
  return Object.fromEntries(
    entries.map(entry => {
      const at = entry.indexOf('=')
      const name = entry.slice(0, Math.max(at, 0)).trim()
      if (!/^[\w.!#$%&'*+^`|~-]+$/.test(name)) throw new Error('must be comma-separated name=value entries')
      return [name, decoded(entry.slice(at + 1).trim())]
    }),
  )
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    throw new Error('has a value that is not percent-encoded correctly')
  }
}

function parseShare(text: string): number {
  if (!/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/.test(text)) throw new Error('must be a number from 0 to 1, such as 0.01')
  return Number(text)
}
