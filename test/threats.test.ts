import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { expectNamedTest } from './setup/named-tests.ts'
import { type System, startSystem } from './setup/system.ts'

/** docs/threat-model.md describes the defences against each threat, and names a test for each. */

const page = await readFile(new URL('../docs/threat-model.md', import.meta.url), 'utf8')
const threats = page
  .split(/^## /m)
  .slice(1)
  .map(section => ({ threat: section.slice(0, section.indexOf('\n')), section }))

test('the page has a section for each threat', () => {
  expect(threats.map(({ threat }) => threat)).toEqual([
    'Replay',
    'Forged proxy headers',
    'Query tampering',
    'Nonce flooding',
    'Log flooding',
    'Expensive lists',
    'Expensive bodies',
    'Unread responses',
    'The internal listener',
    'Unsigned documentation',
    'Misused holds, reversals and batches',
    'Forged receipts',
    'Key enumeration',
    'Smuggling',
    'Hints about wrong signatures',
    'Path confusion',
    'Stolen dump',
    'Insider with database access',
    'A hostile place',
    'A hostile core',
    'Clock attacks',
    'Confused deputy',
    'Server-side request forgery by webhooks',
    'Forged and misdirected deliveries',
    'Slow peers',
    'Documentation pages',
    'The console',
  ])
})

test.each(threats)(
  '$threat: each defence names its tests, which exist, and the remaining risk is described',
  async ({ section }) => {
    const [, done, remains] = /\*\*What we do\*\*\n\n(.*)\n\n\*\*What remains\.\*\* (.+)/s.exec(section)!
    expect(remains!.length).toBeGreaterThan(40)
    const defences = done!.split(/^- /m).slice(1)
    expect(defences.length).toBeGreaterThan(2)
    for (const defence of defences) {
      const named = [...defence.replaceAll(/\s+/g, ' ').matchAll(/`([^`]+\.test\.ts: [^`]+)`/g)].map(
        ([, name]) => name!,
      )
      expect(named.length, defence).toBeGreaterThan(0)
      for (const each of named) await expectNamedTest(each)
    }
  },
)

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

test('a modified query does not change a create', async () => {
  const [source, target, other] = system.wallets.map(({ walletId }) => walletId)
  const body = { sourceWalletId: source, targetWalletId: target, amount: '1.00', currency: 'USD', bizId: 'tampered' }
  const changed = `${createPath}?amount=999&targetWalletId=${other}&bizId=other&currency=EUR`
  const answer = await call(system, 'POST', changed, body)
  expect(answer.body).toMatchObject({ code: '2000', data: body })
  // The create without the query is a replay of the same transfer.
  expect((await call(system, 'POST', createPath, body)).body.data).toEqual(answer.body.data)
})

test('a modified query lists only resources that the key may read', async () => {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Other' })
  const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Other' })
  const own = system.wallets.map(wallet => wallet.walletId)
  for (const query of ['', '?size=100', '?page=0&size=100&sort=name,asc', `?walletIdPrefix=${walletId}`]) {
    const { body } = await call(system, 'GET', `/api/v1/wallets${query}`)
    const ids = (body.data.content as { walletId: string }[]).map(wallet => wallet.walletId)
    expect(own).toEqual(expect.arrayContaining(ids))
  }
  for (const query of [`?workspaceId=${workspaceId}`, '?size=1&size=100', '?workspace_id[]=x'])
    expect((await call(system, 'GET', `/api/v1/wallets${query}`)).body.code).toBe('S012')
})
