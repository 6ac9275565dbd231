import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

test('core does not start with a chain key other than that of its ledger', async () => {
  const other = { LEDGER_CHAIN_KEY: randomBytes(32).toString('base64') }
  await expect(system.startCore(other)).rejects.toThrow('is not the key that this ledger was written with')
  expect((await call(system, 'GET', '/api/v1/wallets')).status).toBe(200)
})
