import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { banner } from './banner.ts'

test('the banner contains the secret on the first start only', () => {
  const addresses = { baseUrl: '', coreUrl: '', consoleUrl: 'http://127.0.0.1:2/console' }
  const demo = {
    ...addresses,
    adminToken: 'the-token',
    workspaceId: '',
    apiKey: 'ak_1',
    apiSecret: 'the-secret',
    wallets: [],
  }
  const has = { docs: true, console: true }
  expect(banner(demo, true, '/demo.json', '/data', has)).toContain('the-secret')
  const later = banner(demo, false, '/demo.json', '/data', has)
  expect(later).not.toContain('the-secret')
  expect(later).toContain(demo.consoleUrl)
  expect(later).not.toContain(demo.adminToken)
  expect(banner(demo, false, '/demo.json', '/data', { docs: true, console: false })).not.toContain(demo.consoleUrl)
})

test('the first signed call is one line, with DATA_DIR if it is not the usual one', () => {
  const demo = {
    ...{ baseUrl: '', coreUrl: '', consoleUrl: '', adminToken: '', workspaceId: '', apiKey: 'ak_1', apiSecret: '' },
    wallets: [],
  }
  const lines = (dataDir: string) =>
    banner(demo, true, '/demo.json', dataDir, { docs: true, console: true }).split('\n')
  const call = 'npm run call -- GET /api/v1/wallets'
  expect(lines(resolve('.data'))).toContain(call)
  expect(lines(`/it's/data`)).toContain(`DATA_DIR='/it'\\''s/data' ${call}`)
})
