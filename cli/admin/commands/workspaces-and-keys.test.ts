import { randomUUID } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import { describe, expect, test } from 'vitest'
import {
  core,
  fails,
  id,
  isoTime,
  json,
  keyRecord,
  modify,
  newKey,
  newWallet,
  newWorkspace,
  run,
  secret,
  sentence,
  system,
  testEveryCommandOf,
  text,
  throughCore,
  words,
} from '../../../test/setup/admin.ts'
import { execute } from '../../../test/setup/database.ts'

describe('workspaces and members', () => {
  test('workspace create prints the ID, and accepts any letters in the name', async () => {
    expect(await json('workspace create --name', 'Ünïcode & Söhne 银行')).toEqual({ workspaceId: id('wsp') })
    expect(await text('workspace create --name Acme')).toMatch(/^Created workspace wsp_\w{26}\.\n$/)
  })

  test('workspace delete is rejected while wallets hold money, unless it is forced', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    await core.wallets.deposit.mutate({ workspaceId, walletId, amount: '5', bizId: randomUUID() })
    expect(await fails(1, `workspace delete --workspace ${workspaceId}`)).toContain(
      'withdraw it first, or give --force',
    )
    expect(await json(`workspace delete --workspace ${workspaceId} --force`)).toEqual({ workspaceId, deleted: true })
    expect(await fails(1, `workspace delete --workspace ${workspaceId}`)).toBe(`There is no workspace ${workspaceId}.`)
    const empty = await newWorkspace()
    expect(await text(`workspace delete --workspace ${empty}`)).toBe(
      `Deleted workspace ${empty}. Its keys no longer work; its history is kept.\n`,
    )
  })

  test('member add and remove fail the second time', async () => {
    const workspaceId = await newWorkspace()
    const flags = `--workspace ${workspaceId} --user grace@example.com`
    expect(await json(`member add ${flags}`)).toEqual({ workspaceId, userId: 'grace@example.com' })
    expect(await fails(1, `member add ${flags}`)).toContain('is a member of')
    expect(await json(`member remove ${flags}`)).toEqual({ workspaceId, userId: 'grace@example.com' })
    expect(await fails(1, `member remove ${flags}`)).toContain('is not a member of')
    expect(await text(`member add ${flags}`)).toBe(`Added grace@example.com to workspace ${workspaceId}.\n`)
    expect(await text(`member remove ${flags}`)).toBe(
      `Removed grace@example.com from workspace ${workspaceId}. The member's keys no longer work.\n`,
    )
  })

  test('workspace list and show, and member list', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    await core.wallets.deposit.mutate({ workspaceId, walletId, amount: '5', bizId: randomUUID() })
    const listed = await json('workspace list --limit 1')
    expect(listed.workspaces).toMatchObject([{ workspaceId, ledger: 'OPEN', wallets: 1, isModified: false }])
    expect(await text('workspace list --limit 1')).toContain(`add --after ${workspaceId}.`)
    expect(await json(`workspace show --workspace ${workspaceId}`)).toMatchObject({
      members: 1,
      funds: [{ currency: 'USD', balance: '5.00' }],
    })
    expect(await text(`workspace show --workspace ${workspaceId}`)).toMatch(
      /^Test \(wsp_\w+\), [\s\S]*\nFunds {6}5.00 USD\n$/,
    )
    expect(await json(`member list --workspace ${workspaceId}`)).toMatchObject({
      members: [{ userId: 'ada' }],
      next: null,
    })
    await core.members.remove.mutate({ workspaceId, userId: 'ada' })
    expect(await text(`member list --workspace ${workspaceId}`)).toBe('No members found.\n')
    expect(await text(`member list --workspace ${workspaceId} --removed`)).toContain('ada   REMOVED')
  })
})

test('workspace move says what it needs', async () => {
  const workspaceId = await newWorkspace()
  const command = `workspace move --workspace ${workspaceId}`
  expect(await fails(2, command)).toBe('Give either --place or --cancel.')
  expect(await fails(2, `${command} --place 1 --cancel`)).toBe('Give either --place or --cancel.')
  expect(await fails(2, `${command} --place home`)).toContain('must be the number of a place')
  const place = sentence(1, await run(words(`${command} --place 1`)))
  expect(place).toContain('MIGRATION_DATABASE_URL')
  const owner = { ...throughCore, MIGRATION_DATABASE_URL: system.database.ownerUrl }
  expect(sentence(1, await run(words(`${command} --place 1`), owner))).toContain('There is no URL for place 1')
  expect(sentence(1, await run(words(`${command} --cancel`), owner))).toBe(`${workspaceId} does not move.`)
  // Where it is already, there is nothing to do.
  const moved = await run([...words(`${command} --place 0`), '--json'], owner)
  expect(JSON.parse(moved.stdout)).toEqual({ workspaceId, place: 0, stoppedMs: null })
})

describe('keys', () => {
  test('key create prints the secret, and says that it is not shown again', async () => {
    const workspaceId = await newWorkspace()
    const flags = `--workspace ${workspaceId} --owner ada --scopes wallet:read,transfer:create`
    const issued = await json(`key create ${flags}`)
    expect(issued).toEqual({ apiKey: id('ak'), apiSecret: secret })
    expect(await text(`key create ${flags}`)).toMatch(
      /^API key {5}ak_\w{26}\nAPI secret {2}[\w-]{43}\n\nStore the secret now\. It is not shown again\.\n$/,
    )
    expect(await keyRecord(workspaceId, String(issued.apiKey))).toMatchObject({
      ownerUserId: 'ada',
      status: 'ACTIVE',
      scopes: ['wallet:read', 'transfer:create'],
      ipAllowlist: [],
      expiresAt: null,
    })
  })

  test('key create accepts addresses, a name, and an expiry as a date, a time or a duration', async () => {
    const workspaceId = await newWorkspace()
    const flags = `--workspace ${workspaceId} --owner ada --scopes wallet:read`
    const full = await json(
      `key create ${flags} --ips 203.0.113.0/24,2001:db8::1 --expires 2099-01-31 --name`,
      'Night job',
    )
    expect(await keyRecord(workspaceId, String(full.apiKey))).toMatchObject({
      ipAllowlist: ['203.0.113.0/24', '2001:db8::1'],
      expiresAt: new Date('2099-01-31T00:00:00Z'),
      name: 'Night job',
    })
    const timed = await json(`key create ${flags} --expires 2099-01-31T12:30:00+02:00`)
    expect((await keyRecord(workspaceId, String(timed.apiKey)))?.expiresAt).toEqual(new Date('2099-01-31T10:30:00Z'))
    const before = Date.now()
    const lasting = await json(`key create ${flags} --expires 90d`)
    const expiresAt = (await keyRecord(workspaceId, String(lasting.apiKey)))?.expiresAt?.getTime() ?? 0
    expect(expiresAt - before).toBeGreaterThanOrEqual(90 * 86_400_000)
    expect(expiresAt - Date.now()).toBeLessThanOrEqual(90 * 86_400_000)
  })

  test('key create rejects an owner who is not a member, unknown scopes, invalid addresses and a past expiry', async () => {
    const workspaceId = await newWorkspace()
    const command = `key create --workspace ${workspaceId} --owner`
    expect(await fails(1, `${command} eve --scopes wallet:read`)).toContain('add the member first')
    expect(await fails(2, `${command} ada --scopes wallet:reed`)).toContain('did you mean wallet:read?')
    expect(await fails(2, `${command} ada --scopes`, '')).toContain('needs at least one of wallet:read')
    expect(await fails(1, `${command} ada --scopes wallet:read --ips 203.0.113.0/33`)).toContain('nor a CIDR block')
    expect(await fails(1, `${command} ada --scopes wallet:read --expires 2020-01-01`)).toContain('in the past')
    expect(await fails(2, `${command} ada --scopes wallet:read --expires tomorrow`)).toContain('2027-01-31')
    expect((await core.apiKeys.list.query({ workspaceId })).keys).toEqual([])
  })

  test('key list prints all keys, those of a workspace, or one, without secrets', async () => {
    const workspaceId = await newWorkspace()
    const [first, second] = [await newKey(workspaceId), await newKey(workspaceId)]
    const listed = await json(`key list --workspace ${workspaceId}`)
    const record = {
      workspaceId,
      ownerUserId: 'ada',
      name: '',
      status: 'ACTIVE',
      scopes: ['wallet:read'],
      ipAllowlist: [],
      expiresAt: null,
      oldSecretUntil: null,
      lastUsedAt: null,
      createdAt: isoTime,
      updatedAt: isoTime,
      isModified: false,
    }
    expect(listed).toEqual({
      keys: [
        { apiKey: first, ...record },
        { apiKey: second, ...record },
      ],
    })
    expect(await json(`key list --key ${second}`)).toEqual({ keys: [{ apiKey: second, ...record }] })
    const all = (await json('key list')) as { keys: { apiKey: string }[] }
    expect(all.keys.map(key => key.apiKey)).toEqual(expect.arrayContaining([first, second]))
    const [headings, ...rows] = (await text(`key list --workspace ${workspaceId}`)).trimEnd().split('\n')
    expect(headings).toMatch(/^KEY +STATUS +WORKSPACE +OWNER +SCOPES +FROM +EXPIRES +OLD SECRET +LAST USED +NAME$/)
    expect(rows).toHaveLength(2)
    expect(rows[0]).toMatch(new RegExp(`^${first} +ACTIVE +${workspaceId} +ada +wallet:read +any +never +no +never$`))
    expect(await text(`key list --workspace ${await newWorkspace()}`)).toBe('No keys found.\n')
    await modify('api_key', uuidFromId('apiKey', first)!)
    expect((await text(`key list --key ${first}`)).split('\n')[1]).toMatch(
      new RegExp(`^${first} +MODIFIED +${workspaceId} `),
    )
    await core.apiKeys.delete.mutate({ apiKey: first })
  })

  test('a name cannot control the terminal of whoever lists it', async () => {
    const workspaceId = await newWorkspace()
    const create = (name: string) =>
      core.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: ['wallet:read'], name })
    await expect(create('\u001b[2Jgone')).rejects.toThrow('name: must not contain a control character')
    await create('gone\u202e')
    const listed = await text(`key list --workspace ${workspaceId}`)
    expect(listed).toContain('gone\uFFFD')
    expect(listed).not.toContain('\u202e')
  })

  test('key disable, enable and delete', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    expect(await json(`key disable --key ${apiKey}`)).toEqual({ apiKey })
    expect((await keyRecord(workspaceId, apiKey))?.status).toBe('DISABLED')
    expect(await text(`key enable --key ${apiKey}`)).toBe(`Enabled key ${apiKey}.\n`)
    expect((await keyRecord(workspaceId, apiKey))?.status).toBe('ACTIVE')
    expect(await json(`key delete --key ${apiKey}`)).toEqual({ apiKey })
    for (const command of ['key disable', 'key rotate', 'key list'])
      expect(await fails(1, `${command} --key ${apiKey}`)).toBe(`There is no key ${apiKey}.`)
  })

  test('key rotate replaces the secret; the old one stops at once or after the grace period', async () => {
    const workspaceId = await newWorkspace()
    const { apiKey, apiSecret } = await json(`key create --workspace ${workspaceId} --owner ada --scopes wallet:read`)
    const rotated = await json(`key rotate --key ${apiKey}`)
    expect(rotated).toEqual({ apiKey, apiSecret: secret })
    expect(rotated.apiSecret).not.toBe(apiSecret)
    expect(await text(`key rotate --key ${apiKey} --grace 24h`)).toContain('It is not shown again')
    const previous = 'select count(*) from api_key where previous_secret_until > now() +'
    await execute(system.database.ownerUrl, `do $$ begin assert (${previous} interval '23 hours') = 1; end $$`)
    await execute(system.database.ownerUrl, `do $$ begin assert (${previous} interval '24 hours') = 0; end $$`)
    const again = await fails(1, `key rotate --key ${apiKey} --grace 24h`)
    expect(again).toMatch(/^The previous secret is valid until \S+Z, .*: wait until then, or give --force\.$/)
    expect(await json(`key rotate --key ${apiKey} --grace 1h --force`)).toEqual({ apiKey, apiSecret: secret })
    expect(await fails(2, `key rotate --key ${apiKey} --grace 31d`)).toBe('--grace must be at most 30d.')
    expect(await fails(2, `key rotate --key ${apiKey} --grace 1.5h`)).toContain('24h')
  })

  test('key set-expiry sets a time, now or never', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    const command = `key set-expiry --key ${apiKey} --expires`
    const expiresAt = '2099-01-31T00:00:00.000Z'
    expect(await json(`${command} 2099-01-31`)).toEqual({ apiKey, expiresAt })
    expect((await keyRecord(workspaceId, apiKey))?.expiresAt).toEqual(new Date(expiresAt))
    expect(await text(`${command} 2099-01-31`)).toBe(`Key ${apiKey} expires at ${expiresAt}.\n`)
    expect(await text(`${command} now`)).toBe(`Key ${apiKey} has expired and no longer works.\n`)
    const ended = (await keyRecord(workspaceId, apiKey))?.expiresAt?.getTime()
    expect(ended).toBeGreaterThan(Date.parse('2020-01-01'))
    expect(ended).toBeLessThanOrEqual(Date.now())
    expect(await text(`${command} never`)).toBe(`Key ${apiKey} never expires.\n`)
    expect((await keyRecord(workspaceId, apiKey))?.expiresAt).toBeNull()
    expect(await fails(2, `${command} later`)).toContain('2027-01-31')
  })

  test('key set-scopes and set-ips replace the old values; an empty list of addresses allows all', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    expect(await json(`key set-scopes --key ${apiKey} --scopes`, 'transfer:read, transfer:create')).toEqual({
      apiKey,
      scopes: ['transfer:read', 'transfer:create'],
    })
    expect(await text(`key set-scopes --key ${apiKey} --scopes wallet:read`)).toBe(
      `Key ${apiKey} now has the scopes wallet:read.\n`,
    )
    expect(await json(`key set-ips --key ${apiKey} --ips 203.0.113.7,2001:db8::/32`)).toEqual({
      apiKey,
      ipAllowlist: ['203.0.113.7', '2001:db8::/32'],
    })
    expect(await keyRecord(workspaceId, apiKey)).toMatchObject({
      scopes: ['wallet:read'],
      ipAllowlist: ['203.0.113.7', '2001:db8::/32'],
    })
    expect(await fails(1, `key set-ips --key ${apiKey} --ips 203.0.113.7,,10.0.0.1`)).toContain('CIDR block')
    expect(await text(`key set-ips --key ${apiKey} --ips`, '')).toBe(
      `Key ${apiKey} can now be used from any address.\n`,
    )
    expect(await json(`key set-ips --key ${apiKey} --ips=`)).toEqual({ apiKey, ipAllowlist: [] })
    expect((await keyRecord(workspaceId, apiKey))?.ipAllowlist).toEqual([])
  })
})

testEveryCommandOf('workspace', 'member', 'key')
