import { expect, test } from 'vitest'
import { z } from 'zod'
import { ConfigurationError, readEnvironment } from '../environment.ts'
import { tracesUrlOf, tracingVariables } from './settings.ts'

const schema = z.object(tracingVariables)
const read = (environment: NodeJS.ProcessEnv) => readEnvironment(schema, environment)

test.each([
  [{}, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, 'http://collector:4318/v1/traces'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/otlp/' }, 'https://collector/otlp/v1/traces'],
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector/spans',
    },
    'http://collector/spans',
  ],
])('spans are sent where the variables of OpenTelemetry say: %o', (environment, url) => {
  expect(tracesUrlOf(read(environment))).toBe(url)
})

test('headers and attributes are percent-encoded pairs', () => {
  expect(
    read({
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a=b, x-tenant = one',
      OTEL_RESOURCE_ATTRIBUTES: 'a=1,',
    }),
  ).toMatchObject({
    OTEL_EXPORTER_OTLP_HEADERS: { authorization: 'Bearer a=b', 'x-tenant': 'one' },
    OTEL_RESOURCE_ATTRIBUTES: { a: '1' },
  })
})

test('the share of traces is a number from 0 to 1', () => {
  const share = (text: string) => read({ OTEL_TRACES_SAMPLER_ARG: text }).OTEL_TRACES_SAMPLER_ARG
  expect(['0', '0.01', '1', '1.0'].map(share)).toEqual([0, 0.01, 1, 1])
})

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'must be a URL that begins with http:// or https://'],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'secret-token' }, 'must be comma-separated name=value entries'],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=secret-token%' }, 'has a value that is not percent-encoded correctly'],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, 'must be parentbased_always_on'],
  [{ OTEL_TRACES_SAMPLER_ARG: '1.5' }, 'must be a number from 0 to 1'],
  [{ OTEL_TRACES_SAMPLER_ARG: '1%' }, 'must be a number from 0 to 1'],
  [{ OTEL_BSP_SCHEDULE_DELAY: '1' }, 'must be a whole number from 10 to 60000'],
])('a wrong variable is reported by name, without its value: %o', (environment, fault) => {
  const [name] = Object.keys(environment)
  const error = faultOf(() => read(environment))
  expect(error.faults).toEqual([expect.stringContaining(`${name} ${fault}`)])
  expect(error.message).not.toContain('secret-token')
})

function faultOf(run: () => unknown): ConfigurationError {
  try {
    run()
  } catch (error) {
    if (error instanceof ConfigurationError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
