/** Spans of OpenTelemetry. This module loads its API only; docs/traces.md lists the spans. */
export * from './attributes.ts'
export * from './spans.ts'
