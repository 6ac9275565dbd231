import { context, DiagLogLevel, diag, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Log } from '../create-log.ts'
import { SampledLog } from '../sampled-log.ts'
import { waitAtMost } from '../wait-at-most.ts'
import type { TracingSettings } from './settings.ts'
import { noteStarted } from './spans.ts'

const maxSpansPerRequest = 512
/** Requests to the collector that may be in progress at a time. */
const maxRequests = 4
/** How long a program that stops waits for the collector. */
const stopMs = 3_000
/** Longer values of attributes are cut. None of ours is longer. */
const maxValueLength = 256

export type TracedProgram = { name: 'core' | 'gateway' | 'courier'; version: string; instanceId: string }

/** `stop`: sends what is recorded, and waits for that `stopMs` at most. */
export type Tracing = { stop: () => Promise<void> }

/** Only `startTracing` imports this module, and only if spans are exported. */
export function openSdk(settings: TracingSettings & { url: string }, program: TracedProgram, log: Log): Tracing {
  const sampled = new SampledLog(log)
  // Neither a slow nor an absent collector may fill the log.
  setGlobalErrorHandler(err => {
    const message = 'spans could not be sent to the OpenTelemetry collector'
    sampled.write('unsent', { level: 'warn', fields: { err }, message, summary: 'more spans could not be sent' })
  })
  const warn = (reason: string) => {
    const summary = 'more warnings of the SDK of OpenTelemetry'
    sampled.write('warning', {
      level: 'warn',
      fields: { reason },
      message: 'a warning of the SDK of OpenTelemetry',
      summary,
    })
  }
  const ignore = () => {}
  // Its other arguments may contain anything that a collector answers.
  const sdkLog = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(sdkLog, DiagLogLevel.WARN)
  const exporter = new OTLPTraceExporter({
    url: settings.url,
    timeoutMillis: settings.OTEL_EXPORTER_OTLP_TIMEOUT,
    concurrencyLimit: maxRequests,
    ...(settings.OTEL_EXPORTER_OTLP_HEADERS && { headers: settings.OTEL_EXPORTER_OTLP_HEADERS }),
  })
  const provider = new TracerProvider({
    sampler: new ParentBasedSampler({ root: rootSamplerOf(settings) }),
    spanLimits: { attributeValueLengthLimit: maxValueLength },
    resource: defaultResource().merge(
      resourceFromAttributes({
        ...settings.OTEL_RESOURCE_ATTRIBUTES,
        'service.name': settings.OTEL_SERVICE_NAME ?? `wallet-${program.name}`,
        'service.version': program.version,
        'service.instance.id': program.instanceId,
      }),
    ),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: settings.OTEL_BSP_MAX_QUEUE_SIZE,
        maxExportBatchSize: Math.min(maxSpansPerRequest, settings.OTEL_BSP_MAX_QUEUE_SIZE),
        scheduledDelayMillis: settings.OTEL_BSP_SCHEDULE_DELAY,
      }),
    ],
  })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  trace.setGlobalTracerProvider(provider)
  noteStarted()
  log.info({ host: new URL(settings.url).host, sampler: settings.OTEL_TRACES_SAMPLER }, 'traces are exported')
  return {
    async stop() {
      await waitAtMost(stopMs, provider.shutdown()).catch(err => log.warn({ err }, 'the last spans could not be sent'))
      sampled.flush()
    },
  }
}

/** For traces that begin in this program. */
function rootSamplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share }: TracingSettings): Sampler {
  if (name === 'parentbased_always_on') return new AlwaysOnSampler()
  if (name === 'parentbased_always_off') return new AlwaysOffSampler()
  return new TraceIdRatioBasedSampler(share)
}
