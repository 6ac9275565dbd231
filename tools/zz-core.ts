import { randomUUID } from 'node:crypto'
import { createLog } from '@workspace-wallet/runtime'
import { openCore } from '../services/core/src/compose.ts'
import { coreSchema } from '../services/core/src/config.ts'
import { appRouter } from '../services/core/src/routers/app-router.ts'
const key = Buffer.alloc(32, 7).toString('base64')
const config = coreSchema.parse({ DATABASE_URL: process.argv[2], DATABASE_WRITERS: 'postgres', KEY_ENCRYPTION_KEYS: `k1:${key}`, LEDGER_CHAIN_KEY: key, RECEIPT_KEYS: `r1:${key}`, VERIFY_EVERY_MINUTES: '0', SERVICE_TOKENS: `test:admin:${'x'.repeat(32)}` })
const opened = await openCore(config, createLog('test', 'warn').log, new AbortController().signal)
const as = (role: any) => appRouter.createCaller({ places: opened.places, core: opened.places.home, token: { name: 'test', role } }) as any
const admin = as('admin'), gateway = as('gateway'), courier = as('courier')
let ok = 0
const it = async (name: string, act: () => Promise<any>) => { const t = performance.now(); try { const r = await act(); ok++; console.log('ok  ', name, Math.round(performance.now() - t)); return r } catch (e: any) { console.log('FAIL', name, String(e.code ?? ''), String(e.message).slice(0, 200)) } }
await it('connections', () => opened.places.home.checkConnections())
const { workspaceId } = await it('workspace', () => admin.workspaces.create({ name: 'X' }))
await it('member', () => admin.members.add({ workspaceId, userId: 'u' }))
const k = await it('key', () => admin.apiKeys.create({ workspaceId, ownerUserId: 'u', scopes: ['transfer:create'] }))
const w = async (n: string) => (await it(`wallet ${n}`, () => admin.wallets.create({ workspaceId, currency: 'USD', name: n })))?.walletId
const [a, b] = [await w('a'), await w('b')]
await it('deposit', () => admin.wallets.deposit({ workspaceId, walletId: a, amount: '1000', bizId: randomUUID() }))
const t = await it('withdraw', () => admin.wallets.withdraw({ workspaceId, walletId: a, amount: '1', bizId: randomUUID() }))
console.log('ok', ok)
await import(process.argv[3] ?? './zz-none.ts').then(m => m.default({ admin, gateway, courier, as, it, workspaceId, a, b, k, opened, key }), e => { if (!/zz-none/.test(e.message)) throw e })
await opened.close()
process.exit(0)
