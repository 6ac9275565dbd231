import { expect, test } from 'vitest'
import { z } from 'zod'
import { ConfigurationError, coreUrls, port, readEnvironment, serverUrl, wholeNumber } from './environment.ts'

const schema = z.object({
  PORT: port.default(8080),
  SIZE: wholeNumber(1, 10).optional(),
  CORE_URL: coreUrls.optional(),
  REDIS_URL: serverUrl('redis', 'rediss').optional(),
  TOKEN: z.string().describe('token of the service').optional(),
})
const faultsOf = (environment: NodeJS.ProcessEnv, of: z.ZodObject = schema) => {
  try {
    readEnvironment(of, environment)
    return []
  } catch (error) {
    return (error as ConfigurationError).faults
  }
}

test('variables are parsed; empty and unknown ones are ignored', () => {
  const environment = { PORT: '', SIZE: '10', CORE_URL: 'http://a:1/x, https://b', REDIS_URL: 'rediss://c', OTHER: '1' }
  expect(readEnvironment(schema, environment)).toEqual({
    PORT: 8080,
    SIZE: 10,
    CORE_URL: ['http://a:1', 'https://b'],
    REDIS_URL: 'rediss://c',
  })
})

test.each([
  [{ PORT: '65536' }, 'PORT must be a port number, 0 to 65535.'],
  [{ PORT: '-1' }, 'PORT must be a port number, 0 to 65535.'],
  [{ PORT: '80 ' }, 'PORT must be a port number, 0 to 65535.'],
  [{ SIZE: '0' }, 'SIZE must be a whole number from 1 to 10.'],
  [{ SIZE: '11' }, 'SIZE must be a whole number from 1 to 10.'],
  [{ SIZE: '1.5' }, 'SIZE must be a whole number from 1 to 10.'],
  [{ SIZE: '0x1' }, 'SIZE must be a whole number from 1 to 10.'],
  [{ CORE_URL: 'http://a,' }, 'CORE_URL must be http:// or https:// URLs.'],
  [{ CORE_URL: 'ftp://a' }, 'CORE_URL must be http:// or https:// URLs.'],
  [{ REDIS_URL: 'http://c' }, 'REDIS_URL must be a URL that begins with redis:// or rediss://.'],
  [{ TOKEN: 'a', TOKEN_FILE: '/b' }, 'TOKEN and TOKEN_FILE are both set: unset one of them.'],
  [
    { TOKEN_FILE: '/does/not/exist' },
    'TOKEN_FILE names /does/not/exist, which cannot be read: check that it exists, and its permissions.',
  ],
])('%o has one fault: %s', (environment, fault) => {
  expect(faultsOf(environment)).toEqual([fault])
})

test('all faults are reported together, and a missing variable with its description', () => {
  const required = schema.extend({ TOKEN: z.string().describe('token of the service') })
  const environment = { PORT: 'x', SIZE: '0' }
  expect(faultsOf(environment, required)).toEqual([
    'PORT must be a port number, 0 to 65535.',
    'SIZE must be a whole number from 1 to 10.',
    'TOKEN is missing: token of the service.',
  ])
  expect(() => readEnvironment(required, environment)).toThrow(ConfigurationError)
})
