import { uuidFromId } from '@workspace-wallet/contract'
import { describe, expect, test } from 'vitest'
import {
  core,
  coreUrl,
  fails,
  isoTime,
  json,
  modify,
  newKey,
  newWallet,
  newWorkspace,
  run,
  sentence,
  system,
  testEveryCommandOf,
  text,
} from '../../../test/setup/admin.ts'

describe('the audit log', () => {
  test('audit list prints who did what and what changed, by any filter, in pages', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    await core.apiKeys.disable.mutate({ apiKey })
    const listed = await json(`audit list --workspace ${workspaceId}`)
    expect(listed).toEqual({
      entries: ['key.disable', 'key.create', 'member.add', 'workspace.create'].map(action =>
        expect.objectContaining({ action, actor: 'admin:a', workspaceId, at: isoTime, id: expect.any(Number) }),
      ),
      next: null,
    })
    const [headings, row, ...others] = (await text(`audit list --target ${apiKey} --action key.disable`)).split('\n')
    expect(headings).toMatch(/^NUMBER +TIME +ACTOR +ACTION +TARGET +WORKSPACE +REASON +REQUEST +CHANGE$/)
    expect(row).toMatch(
      new RegExp(
        `^\\d+ +\\S+Z +admin:a +key.disable +${apiKey} +${workspaceId} +req_\\S+ +status "ACTIVE" → "DISABLED"$`,
      ),
    )
    expect(others).toEqual([''])
    const page = await text(`audit list --workspace ${workspaceId} --limit 3`)
    const [, before] = /There are older actions\. To list them, add --before (\d+)\.\n$/.exec(page) ?? []
    const rest = (await json(`audit list --workspace ${workspaceId} --before ${before}`)) as { entries: unknown[] }
    expect(rest.entries).toEqual([expect.objectContaining({ action: 'workspace.create' })])
    expect(await text('audit list --actor admin:nobody')).toBe('No actions found.\n')
    expect(await text(`audit list --workspace ${workspaceId} --to 1h`)).toBe('No actions found.\n')
    expect(await text(`audit list --workspace ${workspaceId} --from 1h`)).toContain('key.disable')
    const known = 'valid ones are hold.release, kek.rotate, key.create'
    const mistyped = await fails(2, 'audit list --action key.disabled')
    expect(mistyped).toContain(
      `--action contains "key.disabled", which is not a valid action: did you mean key.disable? The ${known}`,
    )
    expect(await fails(2, 'audit list --action x')).toContain(`which is not a valid action: the ${known}`)
    expect(await fails(2, 'audit list --limit 0')).toContain('from 1 to 10000')
    expect(await fails(2, 'audit list --before x')).toContain('NUMBER')
    expect(await fails(2, 'audit list --from yesterday')).toContain('2027-01-31')
  })
})

describe('key-encryption keys', () => {
  test('kek status and kek rotate print how many secrets each key encrypts', async () => {
    const workspaceId = await newWorkspace()
    const apiKey = await newKey(workspaceId)
    const status = await json('kek status')
    expect(status).toEqual({
      active: 'k1',
      keks: [{ kek: 'k1', secrets: expect.any(Number), onRing: true }],
      modified: { count: 0, rows: [] },
    })
    expect(await text('kek status')).toMatch(
      /^New secrets are encrypted under k1\.\n\nKEY-ENCRYPTION KEY +SECRETS +CORE HAS IT\nk1 +\d+ +yes\n$/,
    )
    expect(await json('kek rotate')).toEqual({ ...status, rewrapped: 0, remaining: 0, unreadable: [] })
    expect(await text('kek rotate')).toMatch(
      /^Re-encrypted 0 secrets\.\n\n[\s\S]*\n\nAll secrets are encrypted under k1\. /,
    )
    await modify('api_key', uuidFromId('apiKey', apiKey)!)
    const named = `\n\n1 row modified outside the service: ${apiKey} (${workspaceId}). Their secrets do not count. Delete them.\n`
    expect(await text('kek status')).toContain(named)
    expect(await text('kek rotate')).toContain(named)
    await core.apiKeys.delete.mutate({ apiKey })
  })
})

describe('reasons', () => {
  test('are given with --reason, and listed in the audit log with the request', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const flags = `--workspace ${workspaceId} --wallet ${walletId}`
    await json(`wallet deposit ${flags} --amount 5 --reason`, 'paid by wire')
    await json(`wallet freeze ${flags} --reason`, 'case 4711')
    expect(await text(`audit list --target ${walletId}`)).toMatch(
      /wallet.freeze [^\n]+ case 4711 +req_[\s\S]+ paid by wire +req_/,
    )
    const { entries } = (await json(`audit list --target ${walletId} --action wallet.freeze`)) as {
      entries: { requestId: string }[]
    }
    const { requestId } = entries[0]!
    expect(await json(`audit list --request ${requestId}`)).toEqual({ entries, next: null })
    expect(await text(`search find --text ${requestId}`)).toContain('wallet.freeze by admin:a')
    expect(await fails(2, `wallet freeze ${flags} --reason`, ' ')).toContain('must have 1 to 256 characters')
  })
})

describe('the state of the service', () => {
  test('system status shows the last of each, and keys that expire soon', async () => {
    const workspaceId = await newWorkspace()
    const expiresAt = new Date(Date.now() + 86_400_000)
    const key = { workspaceId, ownerUserId: 'ada', scopes: ['wallet:read' as const], expiresAt }
    const { apiKey } = await core.apiKeys.create.mutate(key)
    await json('ledger verify')
    expect((await json('system status')).lastVerification).toMatchObject({ ok: true })
    const shown = await text('system status')
    expect(shown).toMatch(/^Core \d\S+ \(0001-initial\), Node v24\S+, PostgreSQL 18\S+\nLast verification +sound, /)
    expect(shown).toContain('No workspace is halted.')
    expect(shown).toMatch(new RegExp(`Expire within 30 days:\n[^\n]+\n(.+\n)*${apiKey} +ada`))
  })

  test('system record-backup records what another program has taken', async () => {
    expect(await text('system record-backup --name elsewhere.tar --bytes 4096')).toBe(
      'Recorded the backup elsewhere.tar.\n',
    )
    expect((await json('system status')).lastBackup).toMatchObject({ name: 'elsewhere.tar', bytes: 4096 })
    expect(await fails(2, 'system record-backup --name elsewhere.tar --bytes many')).toContain(
      'must be a number of bytes',
    )
  })

  test('system activity counts transfers; test/activity.test.ts has what it counts', async () => {
    expect(await json('system activity --hours 1')).toMatchObject({ totals: expect.any(Array) })
  })

  test('refusal list shows refused calls', async () => {
    expect(await text('refusal list --code GA2012')).toBe('No refused calls found.\n')
    const gateway = await system.startGateway()
    const response = await fetch(`${gateway.url}/api/v1/wallets`)
    const requestId = response.headers.get('x-request-id')!
    await gateway.stop()
    expect(await text(`refusal list --request ${requestId}`)).toMatch(
      /GA2001 +key +GET \/api\/v1\/wallets +127\.0\.0\.1 +req_/,
    )
    expect((await json(`refusal list --request ${requestId}`)).refusals).toMatchObject([
      { code: 'GA2001', gateway: 'g' },
    ])
  })
})

describe('operators', () => {
  const token = expect.stringMatching(/^opr_[\w-]{55}$/)

  test('operator create prints a token once, with which commands run under the name of the operator', async () => {
    const issued = await json('operator create --name ada --role admin --expires 90d')
    expect(issued).toEqual({ name: 'ada', token, expiresAt: isoTime, role: 'admin' })
    const asAda = (...args: string[]) => run(args, { CORE_URL: coreUrl, CORE_TOKEN: String(issued.token) })
    expect((await asAda('session', 'whoami')).stdout).toBe(
      `operator:ada, with the role admin. The token expires at ${issued.expiresAt}.\n`,
    )
    const { stdout } = await asAda('workspace', 'create', '--name', 'Hers', '--json')
    const { workspaceId } = JSON.parse(stdout)
    expect(await text(`audit list --actor operator:ada`)).toContain(`workspace.create  ${workspaceId}`)
    expect(await json('session whoami')).toEqual({ actor: 'admin:a', name: 'a', role: 'admin', expiresAt: null })
  })

  test('operator rotate, list and disable', async () => {
    expect(await text('operator create --name bob@example.com --role viewer')).toMatch(
      /^Operator {2}bob@example.com\nToken {5}opr_\S+\n\nStore the token now. It is not shown again.\n$/,
    )
    expect(await json('operator rotate --name bob@example.com')).toEqual({
      name: 'bob@example.com',
      token,
      expiresAt: null,
    })
    expect(await text('operator rotate --name bob@example.com --expires 2099-01-01')).toContain(
      'It expires at 2099-01-01T',
    )
    expect(await text('operator list')).toMatch(
      /^NAME +ROLE +STATUS +EXPIRES +CREATED +CHANGED\n[\s\S]*bob@example.com +viewer +ACTIVE +2099-01-01T/,
    )
    expect(await json('operator disable --name bob@example.com')).toEqual({ name: 'bob@example.com', disabled: true })
    expect((await json('operator list')).operators).toContainEqual(
      expect.objectContaining({ name: 'bob@example.com', status: 'DISABLED', isModified: false }),
    )
    expect(await fails(1, 'operator disable --name nobody')).toBe('There is no operator nobody.')
    expect(await fails(2, 'operator create --name Bob --role admin')).toContain('must be 1 to 64 lower-case letters')
    expect(await fails(2, 'operator create --name bob --role root')).toContain('not a valid role')
  })

  test('a viewer who changes something is told which role it takes', async () => {
    const { token } = await core.operators.create.mutate({ name: 'eve', role: 'viewer' })
    const asEve = (args: string[]) => run(args, { CORE_URL: coreUrl, CORE_TOKEN: token })
    expect((await asEve(['ledger', 'verify', '--json'])).exitCode).toBe(0)
    expect(sentence(1, await asEve(['workspace', 'create', '--name', 'Hers']))).toBe(
      'The token of CORE_TOKEN does not have a role that may do this: use one of the role admin.',
    )
    await core.operators.disable.mutate({ name: 'eve' })
    expect(sentence(1, await asEve(['key', 'list']))).toContain('rejects the token of CORE_TOKEN')
  })
})

testEveryCommandOf('audit', 'refusal', 'operator', 'session', 'system', 'kek')
