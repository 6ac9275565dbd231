import {
  ConfigurationError,
  coreUrls,
  parseAddressList,
  parsed,
  parseKeyRing,
  port,
  readEnvironment,
  wholeNumber,
} from '@workspace-wallet/runtime'
import { tracingVariables } from '@workspace-wallet/runtime/start-tracing'
import { z } from 'zod'
import type { Limits } from './auth/limits/rate.ts'
import { parseRedisUrl } from './auth/nonces/redis/url.ts'

export const gatewaySchema = z.object({
  BODY_LIMIT_BYTES: wholeNumber(1024, 1_048_576)
    .default(65_536)
    .describe('Maximum size of a request body, in bytes. The body of a batch may always have 262144'),
  BODY_MEMORY_BYTES: wholeNumber(4_194_304, 1_073_741_824)
    .optional()
    .describe(
      'Memory for the bodies of all requests until they are answered, in bytes. One client address (IPv6: one /64) gets at most half of it. Default: an eighth of the largest heap that Node allows, from 16 to 128 MiB',
    ),
  CONSOLE_DIR: z
    .string()
    .optional()
    .describe(
      'Folder of the built console, which the internal listener then serves at /console. Not served by default',
    ),
  CORE_TOKEN: z.string().min(32, 'must have 32 characters or more').describe('Service token with the role gateway'),
  CORE_URL: coreUrls,
  DOCS: z
    .enum(['on', 'off'])
    .default('on')
    .describe('Whether the public listener serves the documentation: /openapi.json and /docs, unsigned'),
  FAILED_AUTH_PER_MINUTE: wholeNumber(1, 100_000)
    .optional()
    .describe(
      'Failed authentications that one client address (IPv6: one /64) may cause per minute. Unlimited by default',
    ),
  GATEWAY_HOST: z.string().default('127.0.0.1').describe('Address to listen on'),
  GATEWAY_PORT: port.default(8080).describe('Port to listen on'),
  INTERNAL_HOST: z
    .string()
    .default('127.0.0.1')
    .describe('Address of the internal listener: metrics, readiness, and core for internal callers'),
  INTERNAL_PORT: port.default(8082).describe('Port of the internal listener'),
  KEY_ENCRYPTION_KEYS: parsed(parseKeyRing).describe("Core's key-encryption keys: comma-separated id:base64 entries"),
  KEY_REQUESTS_BURST: wholeNumber(1, 100_000)
    .optional()
    .describe('Signed requests that one API key may send at once. Default: KEY_REQUESTS_PER_SECOND'),
  KEY_REQUESTS_PER_SECOND: wholeNumber(1, 100_000)
    .optional()
    .describe(
      'Signed requests that one API key may send per second, on average. Also limits how many nonces of one key are stored. Unlimited by default',
    ),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level that is logged'),
  MAX_CONNECTIONS: wholeNumber(64, 1_000_000)
    .optional()
    .describe(
      'Maximum number of open connections of clients. One client address (IPv6: one /64) gets at most half of them, unless it is in TRUSTED_PROXIES. Default: one for each 128 KiB of the largest heap that Node allows',
    ),
  MAX_REQUESTS: wholeNumber(1, 1_000_000)
    .default(10_000)
    .describe(
      'Requests that the gateway handles at the same time. Further ones fail with S002, unless their workspace has less than an equal share',
    ),
  NONCE_FILE: z
    .string()
    .optional()
    .describe('SQLite file that stores the nonces of a single gateway, instead of REDIS_URL. For embedded mode only'),
  ...tracingVariables,
  REDIS_URL: parsed(parseRedisUrl)
    .optional()
    .describe(
      'Redis that stores the nonces of all gateways: a URL with redis://, redis+sentinel:// or redis+cluster://, or rediss for TLS',
    ),
  RESPONSE_MEMORY_BYTES: wholeNumber(4_194_304, 1_073_741_824)
    .optional()
    .describe(
      'Memory for all responses of endpoints that clients have not read yet, in bytes. One workspace gets at most half of it. Default: an eighth of the largest heap that Node allows, from 16 to 128 MiB',
    ),
  STOP_DELAY_MS: wholeNumber(0, 60_000)
    .default(0)
    .describe(
      'How long to continue serving after SIGTERM, in milliseconds. Meanwhile /readyz fails, so that a load balancer stops sending requests',
    ),
  TRACEPARENTS_PER_SECOND: wholeNumber(0, 100_000)
    .default(10)
    .describe(
      'Requests of one workspace per second that are traced because their `traceparent` header says so. Further ones are sampled like requests without it',
    ),
  TRUSTED_PROXIES: parsed(parseAddressList)
    .default([])
    .describe('Comma-separated addresses and CIDR blocks of proxies whose X-Forwarded-For is trusted'),
})
export type GatewayConfig = z.infer<typeof gatewaySchema>

/** The gateway's configuration, from the environment. @throws ConfigurationError */
export function gatewayConfig(): GatewayConfig {
  const config = readEnvironment(gatewaySchema, process.env)
  if (!config.REDIS_URL && !config.NONCE_FILE)
    throw new ConfigurationError([`REDIS_URL is missing: ${gatewaySchema.shape.REDIS_URL.description}.`])
  if (config.REDIS_URL && config.NONCE_FILE)
    throw new ConfigurationError(['REDIS_URL and NONCE_FILE are both set: keep one.'])
  if (config.KEY_REQUESTS_BURST && !config.KEY_REQUESTS_PER_SECOND)
    throw new ConfigurationError(['KEY_REQUESTS_BURST requires KEY_REQUESTS_PER_SECOND: set both.'])
  return config
}

/** The rate limits that the operator set. */
export function limitsOf({
  KEY_REQUESTS_PER_SECOND: perSecond,
  KEY_REQUESTS_BURST: burst,
  FAILED_AUTH_PER_MINUTE: perMinute,
}: GatewayConfig): Limits {
  return {
    key: perSecond
      ? { name: 'key', intervalMicros: Math.round(1e6 / perSecond), burst: burst ?? perSecond }
      : undefined,
    failures: perMinute
      ? { name: 'failed-authentication', intervalMicros: Math.round(60e6 / perMinute), burst: perMinute }
      : undefined,
  }
}
