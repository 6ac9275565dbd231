import {
  ConfigurationError,
  parsed,
  parseKeyRing,
  port,
  readEnvironment,
  serverUrl,
  wholeNumber,
} from '@workspace-wallet/runtime'
import { z } from 'zod'
import type { Limits } from './auth/limits/rate.ts'
import { parseAddressList } from './network/addresses.ts'

export const gatewaySchema = z.object({
  BODY_LIMIT_BYTES: wholeNumber(1024, 16_777_216).default(65_536).describe('the largest request body, in bytes'),
  CORE_TOKEN: z.string().min(32, 'must have 32 characters or more').describe('a service token of the role gateway'),
  CORE_URL: parsed(parseCoreUrls).describe('where core listens: one URL, or several separated by commas'),
  FAILED_AUTH_PER_MINUTE: wholeNumber(1, 100_000)
    .optional()
    .describe('requests of one address (IPv6: one /64) that may fail authentication in a minute; unlimited unless set'),
  GATEWAY_HOST: z.string().default('127.0.0.1').describe('the address to listen on'),
  GATEWAY_PORT: port.default(8080).describe('the port to listen on'),
  INTERNAL_HOST: z
    .string()
    .default('127.0.0.1')
    .describe('the address of the internal listener: metrics, readiness, and core for internal callers'),
  INTERNAL_PORT: port.default(8082).describe('the port of the internal listener'),
  KEY_ENCRYPTION_KEYS: parsed(parseKeyRing).describe(
    "core's key-encryption keys: id:base64 entries separated by commas",
  ),
  KEY_REQUESTS_BURST: wholeNumber(1, 100_000)
    .optional()
    .describe('signed requests under one key that may come at once; as many as in a second unless set'),
  KEY_REQUESTS_PER_SECOND: wholeNumber(1, 100_000)
    .optional()
    .describe(
      'signed requests under one key in a second, in the long run, whatever they ask for; bounds what one key can make the nonce store remember; unlimited unless set',
    ),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info').describe('the least level to log'),
  NONCE_FILE: z
    .string()
    .optional()
    .describe('embedded mode only, in place of REDIS_URL: the SQLite file that remembers nonces for this one gateway'),
  REDIS_URL: serverUrl('redis', 'rediss').optional().describe('the Redis that remembers nonces for all gateways'),
  STOP_DELAY_MS: wholeNumber(0, 60_000)
    .default(0)
    .describe('how long to go on serving after SIGTERM while /readyz says no, so that a balancer can turn away first'),
  TRUSTED_PROXIES: parsed(parseAddressList)
    .default([])
    .describe('addresses and CIDR blocks of proxies whose X-Forwarded-For is believed, separated by commas'),
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
    throw new ConfigurationError(['KEY_REQUESTS_BURST means nothing without KEY_REQUESTS_PER_SECOND: set both.'])
  return config
}

/** What the operator has limited. */
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

function parseCoreUrls(text: string): string[] {
  return text.split(',').map(entry => {
    const url = URL.parse(entry.trim())
    if (!url || !['http:', 'https:'].includes(url.protocol)) throw new Error('must be http:// or https:// URLs')
    return url.origin
  })
}
