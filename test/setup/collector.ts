/** An OpenTelemetry collector: a real HTTP server that decodes the protobuf of OTLP. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import protobuf from 'protobufjs'
import { listen } from './listen.ts'

/** What is read of opentelemetry/proto/trace/v1/trace.proto, version 1. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Request { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
    fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; repeated Event events = 11; repeated Link links = 13; Status status = 15;
  }
  message Event { string name = 2; repeated KeyValue attributes = 3; }
  message Link { bytes trace_id = 1; bytes span_id = 2; }
  message Status { string message = 2; int32 code = 3; }
`)
const requestType = root.lookupType('Request')

type KeyValue = { key: string; value: Record<string, string | number> }
type Decoded = {
  resourceSpans: { resource: { attributes: KeyValue[] }; scopeSpans: { spans: DecodedSpan[] }[] }[]
}
type Identity = { traceId: Uint8Array; spanId: Uint8Array }
type DecodedSpan = Identity & {
  traceState: string
  parentSpanId: Uint8Array
  name: string
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: KeyValue[]
  events: unknown[]
  links: Identity[]
  status: { code: number; message: string } | null
}

export type ReceivedSpan = {
  /** `service.name` of its program. */
  service: string
  name: string
  traceId: string
  spanId: string
  /** Empty in the span that begins a trace. */
  parentSpanId: string
  traceState: string
  attributes: Record<string, string | number>
  links: { traceId: string; spanId: string }[]
  events: unknown[]
  hasFailed: boolean
  startNanos: bigint
  endNanos: bigint
}

export type Collector = {
  /** OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string
  spans: ReceivedSpan[]
  /** The bodies of all requests. */
  bodies: Buffer[]
  headers: IncomingHttpHeaders[]
  stop(): Promise<void>
}

export async function startCollector(): Promise<Collector> {
  const collector: Omit<Collector, 'url'> = {
    spans: [],
    bodies: [],
    headers: [],
    async stop() {
      server.close()
      server.closeAllConnections()
    },
  }
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/x-protobuf') {
      response.writeHead(404).end()
      return
    }
    collector.bodies.push(body)
    collector.headers.push(request.headers)
    collector.spans.push(...spansIn(body))
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  return { ...collector, url: `http://127.0.0.1:${await listen(server)}` }
}

function spansIn(body: Buffer): ReceivedSpan[] {
  const options = { longs: String, defaults: true, arrays: true }
  const decoded = requestType.toObject(requestType.decode(body), options) as Decoded
  return decoded.resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource.attributes)['service.name'])
    return scopeSpans.flatMap(({ spans }) => spans.map(span => toSpan(service, span)))
  })
}

function toSpan(service: string, span: DecodedSpan): ReceivedSpan {
  const { name, traceState, attributes, links, events, status } = span
  return {
    service,
    name,
    ...identityOf(span),
    parentSpanId: hex(span.parentSpanId),
    traceState,
    attributes: valuesOf(attributes),
    links: links.map(identityOf),
    events,
    hasFailed: status?.code === 2,
    startNanos: BigInt(span.startTimeUnixNano),
    endNanos: BigInt(span.endTimeUnixNano),
  }
}

function identityOf({ traceId, spanId }: Identity) {
  return { traceId: hex(traceId), spanId: hex(spanId) }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function valuesOf(attributes: KeyValue[]): Record<string, string | number> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]!]))
}
