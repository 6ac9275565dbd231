import { expect, test } from 'vitest'
import { caller, core, json, service } from '../../../test/setup/admin.ts'

/** `--reason` of `npm run admin`: why an operator does something is in the audit. */

test('every command about members, keys, operators, webhooks, transfers and holds records its reason', async () => {
  const { workspaceId } = await core.workspaces.create.mutate({ name: 'Reasons' })
  const [source, target] = await Promise.all(
    ['Source', 'Target'].map(name => core.wallets.create.mutate({ workspaceId, currency: 'USD', name })),
  )
  const walletId = source!.walletId
  await core.wallets.deposit.mutate({ workspaceId, walletId, amount: '5', bizId: 'in' })
  const call = { workspaceId, caller }
  const order = { sourceWalletId: walletId, targetWalletId: target!.walletId, amount: '2', currency: 'USD' }
  await service.transfers.create.mutate({ ...call, order: { ...order, bizId: 'order' } })
  const hold = { walletId, amount: '1', currency: 'USD', bizId: 'hold', expiresInSeconds: 600 }
  await service.holds.create.mutate({ ...call, hold })
  const { webhookId } = await service.webhooks.create.mutate({ ...call, url: 'https://shop.example/', bizId: 'hook' })

  const workspace = `--workspace ${workspaceId}`
  const done: string[][] = []
  /** Runs a command, whose reason is its name. */
  async function because(command: string, flags: string) {
    const reason = `the reason of ${command}`
    done.push([command.replace(' ', '.'), reason])
    return json(`${command} ${flags} --reason`, reason)
  }
  await because('operator create', '--name ada --role viewer')
  await because('operator rotate', '--name ada')
  await because('operator disable', '--name ada')
  await because('member add', `${workspace} --user ada`)
  const { apiKey } = await because('key create', `${workspace} --owner ada --scopes wallet:read`)
  const key = `--key ${apiKey}`
  await because('key disable', key)
  await because('key enable', key)
  await because('key rotate', key)
  await because('key set-expiry', `${key} --expires 90d`)
  await because('key set-scopes', `${key} --scopes transfer:read`)
  await because('key set-ips', `${key} --ips 203.0.113.7`)
  await because('key delete', key)
  await because('member remove', `${workspace} --user ada`)
  await because('transfer reverse', `${workspace} --transfer order --amount 2 --currency USD --biz-id refund`)
  await because('hold release', `${workspace} --hold hold`)
  for (const verb of ['pause', 'resume']) await because(`webhook ${verb}`, `${workspace} --webhook ${webhookId}`)
  await because('webhook seek', `${workspace} --webhook ${webhookId} --after 1`)
  await because('webhook delete', `${workspace} --webhook ${webhookId}`)

  const { entries } = await core.audit.list.query({})
  const recorded = entries.flatMap(({ action, reason }) => (reason === null ? [] : [[action, reason]]))
  expect(recorded.toReversed()).toEqual(done)
})
