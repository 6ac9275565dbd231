import { expect, test } from 'vitest'
import { readSettings } from './settings.ts'

const ports = { GATEWAY_PORT: '8080', CORE_PORT: '8081' }

test.each([
  [{}, '127.0.0.0/8,::1/128'],
  [{ GATEWAY_HOST: 'localhost' }, '127.0.0.0/8,::1/128'],
  [{ GATEWAY_HOST: '::1' }, '127.0.0.0/8,::1/128'],
  [{ GATEWAY_HOST: '0.0.0.0' }, ''],
  [{ GATEWAY_HOST: '10.0.0.1' }, ''],
  // A proxy on this machine passes on the requests of others.
  [{ TRUSTED_PROXIES: '127.0.0.1' }, ''],
  [{ TRUSTED_PROXIES: '' }, '127.0.0.0/8,::1/128'],
  [{ TRUSTED_PROXIES_FILE: '/run/secrets/proxies' }, ''],
  [{ TRUSTED_PROXIES: '127.0.0.1', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1' }, '127.0.0.1'],
  [{ WEBHOOK_ALLOWED_NETWORKS: '' }, ''],
  [{ GATEWAY_HOST: '0.0.0.0', WEBHOOK_ALLOWED_NETWORKS: '10.1.0.0/16' }, '10.1.0.0/16'],
])('webhooks may lead to this machine if only its own clients reach the gateway: %j', async (environment, networks) => {
  expect(await readSettings({ ...ports, ...environment })).toMatchObject({ webhookNetworks: networks })
})
