import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { uuidFromId } from '@workspace-wallet/contract'
import { describe, expect, test } from 'vitest'
import {
  adminToken,
  core,
  coreUrl,
  dataDir,
  fails,
  isoTime,
  json,
  newWallet,
  newWorkspace,
  run,
  sentence,
  system,
  testEveryCommandOf,
  text,
  throughCore,
  words,
} from '../../../test/setup/admin.ts'
import { execute, query } from '../../../test/setup/database.ts'
import { startFaultProxy } from '../../../test/setup/fault-proxy.ts'
import { signRows } from '../../../test/setup/sign-rows.ts'
import { type System, startSystem } from '../../../test/setup/system.ts'

describe('ledger verify', () => {
  test('reports a sound ledger', async () => {
    const report = { workspaces: expect.any(Number), wallets: expect.any(Number), flows: expect.any(Number) }
    const sound = { ok: true, ...report, transfers: expect.any(Number), violations: [], brokenRules: [] }
    expect(await json('ledger verify')).toMatchObject(sound)
    expect(await json(`ledger verify --workspace ${system.workspaceId}`)).toMatchObject({ ...sound, workspaces: 1 })
    expect(await text(`ledger verify --workspace ${system.workspaceId}`)).toMatch(
      /^The ledger is sound: 1 workspace, \d+ wallets, \d+ transfers, \d+ flows, \d+ holds\.\n$/,
    )
  })

  test('reports a lost connection', async () => {
    const path = await startFaultProxy(Number(new URL(coreUrl).port))
    void path.fail({ in: 'answer', at: '"kind":"result"', passes: 'none', by: 'reset' })
    const through = { CORE_URL: path.url, CORE_TOKEN: adminToken }
    const ran = await run(words('ledger verify'), through)
    path.cut()
    expect(sentence(1, ran)).toContain('The connection to core was lost during the verification')
  })

  test('fails for a tampered ledger, and names the violations', async () => {
    const tamper = `alter table wallet disable trigger user; update wallet set balance = balance + 1 where name = 'Savings'`
    const tampered = await startSystem({ gateways: 0 })
    const environment = { CORE_URL: tampered.coreUrl, CORE_TOKEN: tampered.adminToken }
    await execute(tampered.database.ownerUrl, tamper)
    const asJson = await run(['ledger', 'verify', '--json'], environment)
    const asText = await run(['ledger', 'verify'], environment)
    await tampered.stop()
    const report = JSON.parse(asJson.stdout)
    expect(report.ok).toBe(false)
    expect(report.violations.length).toBeGreaterThan(0)
    expect(report.brokenRules).toContainEqual({ rule: 'wallet-balance', violations: 1 })
    expect(asText.stdout).toMatch(
      /^BROKEN RULE +VIOLATIONS +WHAT IT SAYS\ndatabase-object +\d+ (.+\n)*wallet-balance +1 (.+\n)*\nRULE +WHERE +WHAT\n/,
    )
    expect(asText.stdout).toContain(tampered.wallets[1]?.walletId)
    for (const { exitCode, stderr } of [asJson, asText]) {
      expect(exitCode).toBe(1)
      expect(stderr).toMatch(/^The ledger has \d+ violations?: [^\n]*\.\n$/)
    }
  })
})

describe('ledger checkpoint', () => {
  const newFile = (name: string) => join(dataDir, `${name}-${randomUUID()}.checkpoint`)
  const through = ({ coreUrl, adminToken }: System) => ({ CORE_URL: coreUrl, CORE_TOKEN: adminToken })

  test('writes a new file, which the ledger continues', async () => {
    const file = newFile('all')
    const taken = await json(`ledger checkpoint --out ${file}`)
    const bytes = await readFile(file)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const { wallets } = await json('ledger verify')
    expect(taken).toEqual({
      file,
      checkpointId: expect.any(String),
      takenAt: isoTime,
      workspaceId: null,
      wallets,
      sha256,
    })

    const workspaceId = await newWorkspace()
    await core.wallets.deposit.mutate({
      workspaceId,
      walletId: await newWallet(workspaceId),
      amount: '5',
      bizId: randomUUID(),
    })
    const { checkpointId, takenAt } = taken
    expect(await json(`ledger verify --against ${file}`)).toMatchObject({
      ok: true,
      checkpoint: { checkpointId, takenAt, workspaceId: null, wallets, fault: null },
    })
    expect(await text(`ledger verify --against ${file}`)).toContain(
      `\nIt continues the checkpoint of ${takenAt} (all workspaces, ${wallets} wallets): nothing recorded before it was changed or removed.\n`,
    )
  })

  test('of one workspace is written to a file whose name contains the time; the audit log has the actor', async () => {
    const workspaceId = await newWorkspace()
    await newWallet(workspaceId)
    const { stdout, exitCode } = await run(['ledger', 'checkpoint', '--workspace', workspaceId], throughCore, dataDir)
    expect(exitCode).toBe(0)
    const [, name] = /^File +(\S+)$/m.exec(stdout) ?? []
    expect(name).toMatch(/\/ledger-\d{8}T\d{6}Z\.checkpoint$/)
    expect(stdout).toContain(`Wrote a checkpoint of 2 wallets in ${workspaceId}, taken at `)
    const part = JSON.parse(await readFile(name!, 'utf8'))
    const rows = await query(system.database.ownerUrl, `select * from audit where target = '${part.checkpointId}'`)
    expect(rows).toEqual([
      expect.objectContaining({
        actor: 'admin:a',
        action: 'ledger.checkpoint',
        workspace_id: uuidFromId('workspace', workspaceId),
        after: { takenAt: part.takenAt, wallets: 2 },
      }),
    ])
    expect(await json(`ledger verify --workspace ${workspaceId} --against ${name}`)).toMatchObject({ ok: true })
  })

  test('never overwrites a file, and removes the file of a failed checkpoint', async () => {
    const file = newFile('kept')
    await writeFile(file, 'precious')
    expect(await fails(1, `ledger checkpoint --out ${file}`)).toBe(
      `${file} already exists, and checkpoints are not overwritten: choose another name with --out.`,
    )
    expect(await readFile(file, 'utf8')).toBe('precious')
    expect(await fails(1, `ledger checkpoint --out ${dataDir}/absent/file`)).toContain(
      'absent/file does not exist: create it, or choose another path with --out.',
    )

    const cut = newFile('cut')
    const path = await startFaultProxy(Number(new URL(coreUrl).port))
    void path.fail({ in: 'answer', at: '"chains"', passes: 'none', by: 'reset' })
    const ran = await run(['ledger', 'checkpoint', '--out', cut], { CORE_URL: path.url, CORE_TOKEN: adminToken })
    path.cut()
    expect(sentence(1, ran)).toBe(
      'The connection to core was lost during the checkpoint: run it again, and check the log of core.',
    )
    const unknown = newFile('unknown')
    expect(await fails(1, `ledger checkpoint --workspace wsp_01k9x5zq3sf4x9vtgkz3b8cdef --out ${unknown}`)).toMatch(
      /^There is no workspace wsp_/,
    )
    for (const left of [cut, unknown]) expect(existsSync(left)).toBe(false)
  })

  test('an unusable checkpoint fails the verification of a sound ledger, and the error says what to give', async () => {
    const [whole, other] = [newFile('whole'), await newWorkspace()]
    await json(`ledger checkpoint --out ${whole}`)
    const files: [string, string, string][] = [
      ['empty', '', 'it is incomplete: its last part is missing'],
      ['changed', (await readFile(whole, 'utf8')).replace('"sequence":1', '"sequence":2'), 'part 0 was changed'],
    ]
    for (const [name, text, fault] of files) {
      const file = newFile(name)
      await writeFile(file, text)
      const { exitCode, stdout, stderr } = await run(words(`ledger verify --against ${file}`))
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringContaining(`The checkpoint was not compared, because ${fault}`),
      })
      expect(stdout).toMatch(/^The ledger is sound: [^\n]*\n$/)
    }
    const narrow = await run(words(`ledger verify --workspace ${other} --against ${whole}`))
    expect(narrow).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`it covers all workspaces, but only ${other} was verified`),
    })
    expect(await fails(1, `ledger verify --against ${whole}.absent`)).toBe(
      `Cannot read the checkpoint from ${whole}.absent (ENOENT): give a file that ledger checkpoint wrote.`,
    )
    expect(await fails(1, `ledger verify --against ${dataDir}`)).toContain('(EISDIR)')
    expect(await fails(2, 'ledger checkpoint --out', '')).toBe('--out must be the path of a file.')
  })

  test('a truncated history is found only with the checkpoint', async () => {
    const cut = await startSystem({ gateways: 0 })
    const file = newFile('before')
    const checkpoint = await run(['ledger', 'checkpoint', '--out', file], through(cut))
    // Removes the last deposit and everything that refers to it.
    await execute(
      cut.database.ownerUrl,
      `set session_replication_role = replica;
       delete from transfer where currency = 'EUR';
       update wallet set balance = 0, sequence = 0, head = '' where currency = 'EUR';
       update ledger set position = position - 1;
       delete from audit where action = 'wallet.deposit' and after ->> 'currency' = 'EUR';
       update audit_head h set (position, mac) = (
         select position, mac from audit a where a.workspace_id = h.workspace_id order by position desc limit 1)
       where exists (select from audit a where a.workspace_id = h.workspace_id)`,
    )
    // Signs the rows again, so that their MACs are as they were before the deposit.
    await signRows(cut.database.ownerUrl, cut.chainKey, 'wallet', "currency = 'EUR'")
    await signRows(cut.database.ownerUrl, cut.chainKey, 'ledger')
    const alone = await run(['ledger', 'verify'], through(cut))
    const against = await run(['ledger', 'verify', '--against', file], through(cut))
    await cut.stop()
    expect(checkpoint.exitCode).toBe(0)
    expect(alone).toMatchObject({ exitCode: 0, stderr: '' })
    expect(against).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('has 4 violations') })
    expect(against.stdout).toContain('the checkpoint names sequence 1, and it is at 0')
    expect(against.stdout).toMatch(/\nCompared with the checkpoint of .*\n$/)
  })
})

test('ledger halted, reopen and repair list, reopen and repair a halted workspace', async () => {
  const broken = await startSystem({ gateways: 0 })
  const environment = { CORE_URL: broken.coreUrl, CORE_TOKEN: broken.adminToken }
  const ran = (line: string) => run(words(line), environment)
  const reopen = `ledger reopen --workspace ${broken.workspaceId}`
  const before = [await ran('ledger halted'), await ran(reopen)] as const
  await execute(
    broken.database.ownerUrl,
    `set session_replication_role = replica; update wallet set balance = balance + 1 where name = 'Savings';
     update ledger set status = 'HALTED', halt_reason = 'somebody wrote past it'`,
  )
  const repair = `ledger repair --workspace ${broken.workspaceId}`
  const [listed, stays, shown, forced] = [
    await ran('ledger halted'),
    await ran(reopen),
    await ran(`${repair} --dry-run`),
    await ran(`${reopen} --force --json`),
  ] as const
  await execute(
    broken.database.ownerUrl,
    "update ledger set status = 'HALTED', halt_reason = 'once more', revision = revision + 1",
  )
  const repaired = await ran(repair)
  await execute(
    broken.database.ownerUrl,
    `insert into audit (at, actor, action, target, workspace_id, position, mac)
     select now(), 'core', 'system.backup', 'forged', workspace_id, position + 1, '' from audit_head
     where workspace_id = '${uuidFromId('workspace', broken.workspaceId)}';
     update ledger set status = 'HALTED', halt_reason = 'again', revision = revision + 1`,
  )
  const withForged = await ran(repair)
  await broken.stop()

  expect(before[0].stdout).toBe('No workspace is halted.\n')
  expect(sentence(1, before[1])).toBe(`${broken.workspaceId} is not halted: it takes postings.`)
  expect(listed.stdout).toMatch(new RegExp(`\n${broken.workspaceId}  somebody wrote past it\n`))
  expect(stays).toMatchObject({
    exitCode: 1,
    stderr: `The ledger of ${broken.workspaceId} has 3 violations: run ledger repair first, or add --force.\n`,
  })
  expect(stays.stdout).toContain('its balance is 251.00, but its flows sum to 250.00')
  expect(stays.stdout).toMatch(/is still halted\.\n$/)
  expect(forced).toMatchObject({ exitCode: 0, stderr: '' })
  expect(JSON.parse(forced.stdout)).toMatchObject({ workspaceId: broken.workspaceId, reopened: true, ok: false })
  const change = /ROW +FIELD +STORED +REBUILT\nwal_\w+ +balance +251.00 +250.00\n/
  expect(shown).toMatchObject({ exitCode: 0, stderr: '' })
  expect(shown.stdout).toMatch(change)
  expect(shown.stdout).toMatch(/is still halted\.\n$/)
  expect(repaired).toMatchObject({ exitCode: 0, stderr: '' })
  expect(repaired.stdout).toMatch(change)
  expect(repaired.stdout).toMatch(/Changed 2 rows\.\nWorkspace wsp_\w+ is open again\.\n$/)
  expect(withForged.stdout).toMatch(/Changed 1 row\.\nWorkspace wsp_\w+ is still halted\.\n$/)
  expect(withForged.stderr).toBe(
    `${broken.workspaceId} was repaired and is still halted, because its audit has entries that the service did not write (audit-chain). Read "After forged audit entries" in docs/operations.md, then run ledger reopen --force.\n`,
  )
})

test('ledger verifications and checkpoints list what has ended', async () => {
  await json('ledger verify')
  const { verifications } = await json('ledger verifications --limit 1')
  expect(verifications).toMatchObject([{ ok: true, actor: 'admin:a', isGenuine: true, brokenRules: [] }])
  expect(await text('ledger verifications --limit 1')).toMatch(/^NUMBER +TIME +RESULT[\s\S]+ sound +whole +all /)
  await json(`ledger checkpoint --out ${join(dataDir, 'listed.checkpoint')}`)
  expect(await text('ledger checkpoints --limit 1')).toMatch(/^NUMBER +TIME +CHECKPOINT[\s\S]+ all +\d+ +admin:a/)
  expect((await json('ledger checkpoints --limit 1')).checkpoints).toMatchObject([{ isGenuine: true }])
})

testEveryCommandOf('ledger')
