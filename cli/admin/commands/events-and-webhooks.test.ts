import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { uuidFromId } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import {
  adminToken,
  balanceOf,
  core,
  fails,
  id,
  isoTime,
  json,
  modify,
  NODE_COMPILE_CACHE,
  newWallets,
  PATH,
  pay,
  reserve,
  root,
  run,
  script,
  service,
  system,
  testEveryCommandOf,
  text,
  words,
} from '../../../test/setup/admin.ts'
import { connect } from '../../../test/setup/database.ts'
import { startFaultProxy } from '../../../test/setup/fault-proxy.ts'
import { startSystem } from '../../../test/setup/system.ts'
import { until } from '../../../test/setup/until.ts'

test('webhook list, pause, resume, seek and delete', async () => {
  const wallets = await newWallets()
  const { workspaceId } = wallets
  const list = `webhook list --workspace ${workspaceId}`
  expect(await text(list)).toBe('No webhooks found.\n')
  const caller = { requestId: 'test' }
  const url = 'https://receiver.example/events'
  const created = await service.webhooks.create.mutate({ workspaceId, caller, url, bizId: 'shop' })
  const { webhookId, position } = created
  const record = {
    webhookId,
    bizId: 'shop',
    url,
    types: [],
    concurrency: 1,
    status: 'ACTIVE',
    position,
    lastStatus: null,
    lastError: null,
    lastAttemptAt: null,
    failingSince: null,
    previousSecretUntil: null,
    createdAt: isoTime,
    updatedAt: isoTime,
  }
  expect(await json(list)).toEqual({ webhooks: [record], last: position, modified: [] })
  const lines = (await text(list)).trimEnd().split('\n')
  expect(lines[0]).toMatch(/^WEBHOOK +STATUS +POSITION +BEHIND +LAST RESULT +FAILING SINCE +BIZ ID +URL$/)
  expect(lines[1]).toMatch(new RegExp(`^${webhookId} +ACTIVE +${position} +0 +- +- +shop +${url}$`))
  const one = `--workspace ${workspaceId} --webhook ${webhookId}`
  for (let times = 0; times < 2; times++)
    expect(await json(`webhook pause ${one}`)).toEqual({ ...record, status: 'PAUSED' })
  expect(await text(`webhook resume ${one}`)).toBe(`Webhook ${webhookId} is ACTIVE at position ${position}.\n`)
  const { entries } = await core.audit.list.query({ workspaceId, target: webhookId })
  expect(entries.map(({ actor, action }) => [actor.split(':')[0], action])).toEqual([
    ['admin', 'webhook.resume'],
    ['admin', 'webhook.pause'],
    ['service', 'webhook.create'],
  ])
  expect(await text(`webhook seek ${one} --after 1`)).toBe(`Webhook ${webhookId} continues after position 1.\n`)
  expect((await text(list)).split('\n')[1]).toMatch(new RegExp(`^${webhookId} +ACTIVE +1 +${position - 1} `))
  expect(await fails(1, `webhook seek ${one} --after 1000`)).toContain(`The log ends at position ${position}`)
  for (let times = 0; times < 2; times++) expect(await json(`webhook delete ${one}`)).toEqual({ webhookId })
  expect(await fails(1, `webhook pause ${one}`)).toBe('The workspace has no such webhook: check both IDs.')
  expect(await json(list)).toEqual({ webhooks: [], last: position, modified: [] })
  const stray = await service.webhooks.create.mutate({ workspaceId, caller, url, bizId: 'stray' })
  await modify('webhook', uuidFromId('webhook', stray.webhookId)!)
  expect(await text(list)).toBe(
    `No webhooks found.\n\nModified outside the service, and without deliveries: ${stray.webhookId}. Delete them.\n`,
  )
  await core.webhooks.delete.mutate({ workspaceId, caller, webhookId: stray.webhookId })
  expect(await json(list)).toEqual({ webhooks: [], last: position, modified: [] })
})

test('event tail prints the last events, or all after a position; --json prints an object on each line', async () => {
  const wallets = await newWallets()
  const { workspaceId, source, target } = wallets
  await reserve(wallets, 'booking', '40.00')
  const { transferId } = await pay(wallets, 'order-1', { holdId: 'booking' })
  await json(
    `transfer reverse --workspace ${workspaceId} --transfer order-1 --amount 30.00 --currency USD --biz-id refund`,
  )
  await json(`wallet freeze --workspace ${workspaceId} --wallet ${target}`)
  const command = `event tail --workspace ${workspaceId}`
  const [heading, ...rows] = (await text(command)).trimEnd().split('\n')
  expect(heading).toMatch(/^POSITION +TIME +TYPE +WHAT$/)
  const types = rows.map(row => row.split(/ +/)[2])
  expect(types.slice(-5)).toEqual([
    'wallet.deposited',
    'hold.created',
    'transfer.completed',
    'transfer.completed',
    'wallet.frozen',
  ])
  expect(rows.map(row => Number(row.split(' ')[0]))).toEqual(rows.map((_, index) => index + 1))
  expect(rows.at(-2)).toContain(`30.00 USD from ${target} to ${source}, refund, reverses ${transferId}`)
  expect(rows.at(-1)).toMatch(new RegExp(` ${target} FROZEN \\(USD\\) by OPERATOR$`))

  const after = rows.length - 3
  const { exitCode, stdout, stderr } = await run(words(`${command} --after ${after} --json`))
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const events = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(events.map(({ position, type }) => [position, type])).toEqual([
    [after + 1, 'transfer.completed'],
    [after + 2, 'transfer.completed'],
    [after + 3, 'wallet.frozen'],
  ])
  expect(events[0]).toMatchObject({
    eventId: id('evt'),
    timestamp: isoTime,
    workspaceId,
    data: {
      transfer: { transferId, amount: '30.00' },
      balances: { source: { walletId: source, balanceAfter: '70.00' }, target: { balanceAfter: '30.00' } },
      holdRemaining: '0.00',
    },
  })
  expect(await fails(1, `${command} --after ${rows.length + 1} --json`)).toBe(
    `The log ends at position ${rows.length}: give a lower --after. If it was longer before, an earlier copy of the database was restored.`,
  )
  expect(await fails(2, `${command} --after -1`)).toContain('must be a whole number')
})

test('event tail --follow continues after core restarts, and ends cleanly when it is interrupted', async () => {
  const wallets = await newWallets()
  const { workspaceId, source } = wallets
  const own = await system.startCore()
  // The restarted core has another port, because another program may have taken the one before.
  const path = await startFaultProxy(own.port)
  const child = spawn(
    process.execPath,
    [script, 'event', 'tail', '--workspace', workspaceId, '--after', '0', '--follow', '--json'],
    { cwd: root, env: { PATH, NODE_COMPILE_CACHE, CORE_URL: path.url, CORE_TOKEN: adminToken } },
  )
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', chunk => (stdout += chunk))
  child.stderr.on('data', chunk => (stderr += chunk))
  const exited = once(child, 'close')
  const prints = (bizId: string) => until(`it prints ${bizId}`, () => stdout.includes(`"bizId":"${bizId}"`))

  await prints('start')
  await pay(wallets, 'while-it-follows')
  await prints('while-it-follows')
  await own.stop()
  await until('it notices that core is gone', () => stderr !== '')
  await pay(wallets, 'while-core-is-gone')
  path.pointTo((await system.startCore()).port)
  await prints('while-core-is-gone')
  child.kill('SIGINT')
  expect(await exited).toEqual([0, null])
  expect(stderr).toBe('Core is unavailable. Waiting for it.\n')
  const positions = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).position)
  expect(positions).toEqual(positions.map((_, index) => index + 1))
  expect(await balanceOf(workspaceId, source)).toBe('40.00')
})

test('event tail --follow fails if another history replaces the one that it printed', async () => {
  const restored = await startSystem({ gateways: 0 })
  const { workspaceId, database } = restored
  const following = spawn(
    process.execPath,
    [script, 'event', 'tail', '--workspace', workspaceId, '--follow', '--json'],
    { cwd: root, env: { PATH, NODE_COMPILE_CACHE, CORE_URL: restored.coreUrl, CORE_TOKEN: restored.adminToken } },
  )
  const exited = once(following, 'close')
  let [stdout, stderr] = ['', '']
  following.stdout.on('data', chunk => (stdout += chunk))
  following.stderr.on('data', chunk => (stderr += chunk))
  await until('it prints the last event', () => stdout.includes('"position":6'))
  const owner = await connect(database.ownerUrl)
  const tables = ['ledger', 'wallet', 'transfer']
  for (const table of tables) await owner.query(`create temporary table earlier_${table} as table ${table}`)
  const deposit = () =>
    restored.admin.wallets.deposit.mutate({
      workspaceId,
      walletId: restored.wallets[0]!.walletId,
      amount: '1.00',
      bizId: randomUUID(),
    })
  await deposit()
  await until('it prints the next event', () => stdout.includes('"position":7'))
  await owner.query('begin; set local session_replication_role = replica')
  for (const table of tables)
    await owner.query(`delete from ${table}; insert into ${table} select * from earlier_${table}`)
  await owner.query('commit')
  await owner.end()
  await deposit()
  expect(await exited).toEqual([1, null])
  expect(stderr).toMatch(
    /^The event at position 7 is no longer evt_\w{26}, because an earlier copy of the database was restored: run the command again\.\n$/,
  )
  await restored.stop()
})

testEveryCommandOf('event', 'webhook')
