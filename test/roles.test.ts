import { randomBytes } from 'node:crypto'
import { packBatch, type Scope, unpackBatch } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { sendBatch } from './setup/batches.ts'
import { findProcedures, type Procedure } from './setup/procedures.ts'
import { type System, startSystem } from './setup/system.ts'

/** The role of a service token decides which procedures it may call. A gateway may act only on the workspace of a key. */

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
/** A core with two tokens of each role, as during their replacement. */
let coreOfMany: Program
const secret = () => randomBytes(32).toString('base64url')
const tokens = {
  gateway: [secret(), secret()],
  service: [secret(), secret()],
  funding: [secret(), secret()],
  courier: [secret(), secret()],
  admin: [secret(), secret()],
  viewer: [secret(), secret()],
}
beforeAll(async () => {
  const named = Object.entries(tokens).flatMap(([role, ofRole]) => ofRole.map((token, at) => `n${at}:${role}:${token}`))
  coreOfMany = await system.startCore({ SERVICE_TOKENS: named.join(',') })
})
afterAll(async () => {
  await clients.gateway.close()
  await clients.service.close()
  await system.stop()
})

const procedures = await findProcedures()

/** Calls on one workspace, for its clients. */
const onWorkspace = [
  'events.read',
  'holds.create',
  'holds.get',
  'holds.list',
  'holds.release',
  'receipts.get',
  'receipts.keys',
  'transfers.batch',
  'transfers.create',
  'transfers.get',
  'transfers.list',
  'transfers.reverse',
  'wallets.balance',
  'wallets.balanceAt',
  'wallets.changeStatus',
  'wallets.create',
  'wallets.flows',
  'wallets.get',
  'wallets.list',
  'wallets.statement',
  'webhooks.create',
  'webhooks.delete',
  'webhooks.get',
  'webhooks.list',
  'webhooks.rotate',
  'webhooks.seek',
  'webhooks.update',
]
/** The procedures of each role, written a second time so that no role is extended by accident. */
const reach: Record<string, string[]> = {
  gateway: [
    'access.beginNonceGeneration',
    'access.changes',
    'access.latestNonceGenerations',
    'access.lookup',
    'access.markUsed',
    'access.nonceKey',
    'instances.leave',
    'instances.report',
    'refusals.report',
    ...onWorkspace,
  ],
  service: [...onWorkspace, 'wallets.flowsAfter'],
  // Only this role can bring money into a workspace and out of it.
  funding: ['wallets.balance', 'wallets.balanceAt', 'wallets.deposit', 'wallets.get', 'wallets.withdraw'],
  // Reads the events of all workspaces, and changes nothing but the state of deliveries.
  courier: ['courier.lease', 'courier.report', 'instances.leave', 'instances.report'],
  // Everything that operators read. ledger.checkpoint and ledger.verify are recorded; nothing else changes.
  viewer: [
    'apiKeys.list',
    'audit.list',
    'events.read',
    'fundings.get',
    'fundings.list',
    'holds.get',
    'holds.list',
    'keks.status',
    'ledger.checkpoint',
    'ledger.checkpoints',
    'ledger.halted',
    'ledger.verifications',
    'ledger.verify',
    'limits.list',
    'members.list',
    'moves.find',
    'operators.list',
    'receipts.check',
    'receipts.get',
    'receipts.keys',
    'refusals.list',
    'search.find',
    'session.whoami',
    'system.activity',
    'system.status',
    'transfers.get',
    'transfers.list',
    'transfers.search',
    'transfers.trace',
    'wallets.balance',
    'wallets.balanceAt',
    'wallets.flows',
    'wallets.flowsAfter',
    'wallets.get',
    'wallets.list',
    'wallets.search',
    'wallets.statement',
    'webhooks.get',
    'webhooks.list',
    'webhooks.modified',
    'workspaces.get',
    'workspaces.list',
  ],
}

test('docs/roles.md is up to date: npm run golden writes it', async () => {
  const rows = procedures
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(
      ({ path, roles: ofPath, scope }) =>
        `| ${[`\`${path}\``, ...roles.map(role => (ofPath?.includes(role) ? markOf(role, scope) : ''))].join(' | ')} |`,
    )
  const table = [`| procedure | ${roles.join(' | ')} |`, `| --- ${'| :-: '.repeat(roles.length)}|`, ...rows]
  await expect(`${rolesIntroduction}\n${table.join('\n')}\n`).toMatchFileSnapshot('../docs/roles.md')
})

const rolesIntroduction = `# Roles of tokens

Generated from core's router by \`npm run golden\`. Every caller of core presents a token: programs one of \`SERVICE_TOKENS\`,
operators one of their own, which \`npm run admin -- operator create\` issues. Its role decides which procedures it may call.
\`test/roles.test.ts\` tests each procedure with each role.

A viewer reads everything that an admin reads, and changes nothing. Two of these calls leave a record nevertheless:
\`ledger.checkpoint\` and \`ledger.verify\`, which are recorded in the audit. To compare with a checkpoint file, which is uploaded
first, takes an admin.

A gateway calls on behalf of an API key. Core checks the key again: that it is neither disabled, expired nor deleted, that its owner
is a member of the workspace, and that it has the scope in the column \`gateway\`. A transfer that captures a hold also needs
\`hold:create\`, and an item of a batch that reverses a transfer \`transfer:reverse\`. A ✓ in that column marks what gateways call for
themselves.

| role | for | workspaces |
| --- | --- | --- |
| gateway | gateways, on behalf of an API key | the workspace of the API key |
| service | internal services that move money within a workspace | all |
| courier | couriers, which deliver webhooks | all |
| funding | the service that brings money into workspaces and out of them | all |
| admin | operators | all |
| viewer | operators who only read, such as auditors and support | all |
`

/** What a gateway may do depends on the API key that it calls for. */
const markOf = (role: string, scope: Scope | null | undefined) => (role === 'gateway' && scope ? `\`${scope}\`` : '✓')

test('every procedure names its roles', () => {
  expect(procedures.length).toBeGreaterThan(25)
  for (const { path, roles } of procedures) expect(roles?.length, path).toBeGreaterThan(0)
})

const roles = ['gateway', 'service', 'funding', 'courier', 'admin', 'viewer'] as const
/** Administrators may call everything except what needs an API key or is for gateways. */
const notForAdmin = [
  'access.beginNonceGeneration',
  'access.changes',
  'access.latestNonceGenerations',
  'access.lookup',
  'access.markUsed',
  'access.nonceKey',
  'instances.leave',
  'instances.report',
  'refusals.report',
  'courier.lease',
  'courier.report',
  'holds.create',
  'transfers.batch',
  'transfers.create',
  'webhooks.create',
  'webhooks.rotate',
]
const isReached = (role: (typeof roles)[number], path: string) =>
  role === 'admin' ? !notForAdmin.includes(path) : reach[role]!.includes(path)

describe.each(roles)('a token of the role %s', role => {
  test('may call the procedures of its role and no others', () => {
    const reached = procedures.filter(({ roles }) => roles!.includes(role)).map(({ path }) => path)
    expect(reached.sort()).toEqual(
      procedures
        .map(({ path }) => path)
        .filter(path => isReached(role, path))
        .sort(),
    )
  })

  test.each(procedures)('$path: with either of two tokens, through both endpoints', async ({ path, type }) => {
    for (const token of tokens[role]) {
      const isRefused = ({ error }: CoreAnswer) =>
        error?.data.code === 'FORBIDDEN' && error.message.includes('may not call')
      expect(isRefused(await callInBatch(token, path, type))).toBe(!isReached(role, path))
      expect(isRefused(await trpc(token, path, type))).toBe(!isReached(role, path))
    }
  })
})

type CoreAnswer = { error?: { message: string; data: { code: string } } }
type Type = Procedure['type']

/** Calls without input: the role is checked before the input. */
async function callInBatch(token: string, path: string, type: Type, input = {}): Promise<CoreAnswer> {
  const { body } = await sendBatch(coreOfMany.url, token, packBatch([{ path, type, input }]))
  return (unpackBatch(body) as CoreAnswer[])[0]!
}

/** The same call in a tRPC batch of two. */
async function trpc(token: string, path: string, type: Type): Promise<CoreAnswer> {
  const input = encodeURIComponent(JSON.stringify({ 0: { json: {} }, 1: { json: {} } }))
  const query = type === 'query' ? `&input=${input}` : ''
  const response = await fetch(`${coreOfMany.url}/trpc/${path},${path}?batch=1${query}`, {
    method: type === 'query' ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(type === 'query' ? {} : { body: '{"0":{"json":{}},"1":{"json":{}}}' }),
  })
  const answers = (await response.json()) as { error?: { json: NonNullable<CoreAnswer['error']> } }[]
  expect(answers).toHaveLength(2)
  return answers[1]!.error ? { error: answers[1]!.error.json } : {}
}

test('a viewer may call every query of an administrator, and no mutation', () => {
  const [mutations, queries] = ['mutation', 'query'].map(type => procedures.filter(each => each.type === type))
  for (const { path, roles } of mutations!) expect(roles, path).not.toContain('viewer')
  for (const { path, roles } of queries!) expect(roles!.includes('viewer'), path).toBe(roles!.includes('admin'))
})

test('a token can be replaced: the new one works next to the old one, then alone', async () => {
  const [old, replacement] = [secret(), secret()]
  const status = async (url: string, token: string) =>
    (await fetch(`${url}/trpc/audit.list`, { headers: { authorization: `Bearer ${token}` } })).status
  const both = await system.startCore({ SERVICE_TOKENS: `before:admin:${old},after:admin:${replacement}` })
  expect([await status(both.url, old), await status(both.url, replacement)]).not.toContain(401)
  const alone = await system.startCore({ SERVICE_TOKENS: `after:admin:${replacement}` })
  expect(await status(alone.url, old)).toBe(401)
  expect(await status(alone.url, replacement)).not.toBe(401)
})

test.each(['', 'Bearer ', 'Bearer x', 'Basic abc', 'bearer'])(
  'without a known token every call is rejected: "%s"',
  async authorization => {
    for (const path of ['/batch', '/trpc/wallets.get']) {
      const response = await fetch(system.coreUrl + path, { method: 'POST', headers: { authorization }, body: '{}' })
      expect(response.status).toBe(401)
    }
  },
)

test('a gateway token cannot act without an API key, or on a workspace of another one', async () => {
  const { workspaceId: other } = await system.admin.workspaces.create.mutate({ name: 'Other' })
  const caller = { apiKey: system.apiKey, requestId: 'r' }
  const walletId = system.wallets[0]!.walletId
  await expect(
    clients.gateway.wallets.get.query({ workspaceId: system.workspaceId, caller, walletId }),
  ).resolves.toBeTruthy()
  for (const [apiKey, code] of [
    [system.apiKey, 'FORBIDDEN'],
    [undefined, 'FORBIDDEN'],
    ['ak_01h455vb4pex5vsknk084sn02q', 'UNAUTHORIZED'],
    ['nonsense', 'UNAUTHORIZED'],
  ] as const)
    await expect(
      clients.gateway.wallets.get.query({ workspaceId: other, caller: { requestId: 'r', apiKey }, walletId }),
    ).rejects.toMatchObject({ data: { code } })
  await expect(
    clients.gateway.wallets.get.query({ workspaceId: system.workspaceId, caller: { requestId: 'r' }, walletId }),
  ).rejects.toMatchObject({ data: { code: 'FORBIDDEN' } })
})

/** Of no workspace: the public keys of receipts are the same for all, and gateways report themselves and refused calls. */
const ofAllWorkspaces = ['instances.leave', 'instances.report', 'receipts.keys', 'refusals.report']

test.each(reach.gateway!.filter(path => !path.startsWith('access.') && !ofAllWorkspaces.includes(path)))(
  'a gateway token may call %s only for the workspace of the API key',
  async path => {
    const { type } = procedures.find(each => each.path === path)!
    const { workspaceId: other } = await system.admin.workspaces.create.mutate({ name: 'Other' })
    const caller = { apiKey: system.apiKey, requestId: 'r' }
    const token = tokens.gateway[0]!
    const foreign = await callInBatch(token, path, type, { workspaceId: other, caller })
    expect(foreign.error?.message).toContain('the API key does not belong to this workspace')
    const own = await callInBatch(token, path, type, { workspaceId: system.workspaceId, caller })
    expect(own.error?.data.code).not.toBe('FORBIDDEN')
  },
)

test('a service that calls core directly receives Decimal and Date', async () => {
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

test('a streamed procedure is rejected in a batch, and the error names the right endpoint', async () => {
  for (const path of ['ledger.verify', 'ledger.checkpoint']) {
    const answer = await callInBatch(tokens.admin[0]!, path, 'query')
    expect(answer.error).toMatchObject({
      message: `${path} streams its answer: call it at /trpc`,
      data: { code: 'BAD_REQUEST' },
    })
  }
})
