import { type CoreClient, createCoreClient } from '@workspace-wallet/core/client'
import { packFlight, unpackFlight } from '@workspace-wallet/core/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { appRouter } from '../services/core/src/router.ts'
import { type System, startSystem } from './setup/system.ts'

/** Who reaches what inside: a service token's role decides, and a gateway acts for a key on that key's workspace only. */

let system: System
let clients: Record<'gateway' | 'service' | 'admin', CoreClient>
beforeAll(async () => {
  system = await startSystem()
  const { coreUrl: url } = system
  clients = {
    gateway: createCoreClient({ url, token: system.gatewayToken }),
    service: createCoreClient({ url, token: system.serviceToken }),
    admin: system.admin,
  }
})
afterAll(async () => {
  await clients.gateway.close()
  await clients.service.close()
  await system.stop()
})

type Procedure = { _def: { meta?: { roles?: readonly string[] }; type: 'query' | 'mutation' } }
const procedures = Object.entries(appRouter._def.procedures as unknown as Record<string, Procedure>)

/** What each role reaches. Widening one is a decision: it has to be written here as well. */
const reach: Record<string, string[]> = {
  gateway: [
    'access.beginNonces',
    'access.changes',
    'access.lookup',
    'access.markUsed',
    'transfers.create',
    'transfers.get',
    'transfers.list',
    'wallets.balance',
    'wallets.flows',
    'wallets.get',
    'wallets.list',
  ],
  service: [
    'transfers.create',
    'transfers.get',
    'transfers.list',
    'wallets.balance',
    'wallets.deposit',
    'wallets.flows',
    'wallets.get',
    'wallets.list',
    'wallets.withdraw',
  ],
}

test('every procedure names its roles', () => {
  expect(procedures.length).toBeGreaterThan(25)
  for (const [path, { _def }] of procedures) expect(_def.meta?.roles?.length, path).toBeGreaterThan(0)
})

describe.each(['gateway', 'service'] as const)('a %s token', role => {
  test('reaches what it needs and nothing else', () => {
    const reached = procedures.filter(([, { _def }]) => _def.meta!.roles!.includes(role)).map(([path]) => path)
    expect(reached.sort()).toEqual(reach[role])
  })

  test.each(procedures.map(([path, { _def }]) => ({ path, type: _def.type })))(
    '$path over HTTP',
    async ({ path, type }) => {
      const answer = await flight(role === 'gateway' ? system.gatewayToken : system.serviceToken, path, type)
      const isRefused = answer.error?.data.code === 'FORBIDDEN' && answer.error.message.includes('may not call')
      expect(isRefused).toBe(!reach[role]!.includes(path))
    },
  )
})

/** A call without input: refused for its role before its input is looked at. */
async function flight(token: string, path: string, type: Procedure['_def']['type']) {
  const response = await fetch(`${system.coreUrl}/flight`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: packFlight([{ path, type, input: {} }]),
  })
  const answers = unpackFlight(await response.bytes()) as { error?: { message: string; data: { code: string } } }[]
  return answers[0]!
}

test.each(['', 'Bearer ', 'Bearer x', 'Basic abc', 'bearer'])(
  'without a known token nothing is served: "%s"',
  async authorization => {
    for (const path of ['/flight', '/trpc/wallets.get']) {
      const response = await fetch(system.coreUrl + path, { method: 'POST', headers: { authorization }, body: '{}' })
      expect(response.status).toBe(401)
    }
  },
)

test("a gateway token cannot act on a workspace that is not its key's", async () => {
  const { workspaceId: other } = await system.admin.workspaces.create.mutate({ name: 'Other' })
  const caller = { apiKey: system.apiKey, requestId: 'r' }
  const walletId = system.wallets[0]!.walletId
  await expect(
    clients.gateway.wallets.get.query({ workspaceId: system.workspaceId, caller, walletId }),
  ).resolves.toBeTruthy()
  for (const apiKey of [system.apiKey, undefined, 'ak_01h455vb4pex5vsknk084sn02q', 'nonsense'])
    await expect(
      clients.gateway.wallets.get.query({ workspaceId: other, caller: { requestId: 'r', apiKey }, walletId }),
    ).rejects.toMatchObject({ data: { code: 'FORBIDDEN' } })
  await expect(
    clients.gateway.wallets.get.query({ workspaceId: system.workspaceId, caller: { requestId: 'r' }, walletId }),
  ).rejects.toMatchObject({ data: { code: 'FORBIDDEN' } })
})

test('a service calls core directly, with types: Decimal and Date arrive intact', async () => {
  const [source, target] = system.wallets
  const { workspaceId } = system
  const caller = { requestId: 'from-a-service' }
  const order = { sourceWalletId: source!.walletId, targetWalletId: target!.walletId, amount: '0.10', currency: 'USD' }
  const created = await clients.service.transfers.create.mutate({ workspaceId, caller, order })
  expect(created.createdAt).toBeInstanceOf(Date)
  const { balance, updatedAt } = await clients.service.wallets.balance.query({
    workspaceId,
    caller,
    walletId: source!.walletId,
  })
  expect(balance.plus('0.10').toFixed(2)).toBe('1000.00')
  expect(updatedAt).toBeInstanceOf(Date)
})
