/** `npm run admin -- statement export`: the content of its files, and that it never leaves half of one. */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runAdmin } from '../test/setup/admin-command.ts'
import { execute } from '../test/setup/database.ts'
import { startFaultProxy } from '../test/setup/fault-proxy.ts'
import { moveTransfersToPast } from '../test/setup/past.ts'
import { type System, startSystem } from '../test/setup/system.ts'
import { makeTempDir } from '../test/setup/temp.ts'
import { retryUnavailable } from './processes/retry.ts'

/** More than one page of lines. */
const deposits = 1_050
const [totalIn, totalOut, closing] = ['1155.00', '155.00', '1000.00']

let system: System
let workspaceId: string
let walletId: string
let exported: string
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
  workspaceId = (await system.admin.workspaces.create.mutate({ name: 'Exported' })).workspaceId
  walletId = (await newWallet('Till')).walletId
  for (let done = 0; done < deposits; done += 50) await Promise.all(Array.from({ length: 50 }, () => deposit('1.10')))
  await system.admin.wallets.withdraw.mutate({ workspaceId, walletId, amount: '155', bizId: randomUUID() })
  await moveTransfersToPast(system.database.ownerUrl, workspaceId)
  exported = `statement export --workspace ${workspaceId} --wallet ${walletId} --from 2h --to 1m`
})
afterAll(() => system.stop())

const newWallet = (name: string) => system.admin.wallets.create.mutate({ workspaceId, currency: 'USD', name })
const deposit = (amount: string, to = walletId) =>
  retryUnavailable(() =>
    system.admin.wallets.deposit.mutate({ workspaceId, walletId: to, amount, bizId: randomUUID() }),
  )
const directory = await makeTempDir('statements')
const newFile = (name: string) => join(directory, `${randomUUID()}-${name}`)

const run = (line: string, coreUrl = system.coreUrl) => runAdmin({ ...system, coreUrl }, line)

async function text(line: string): Promise<string> {
  const { exitCode, stdout, stderr } = await run(line)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout
}

/** Runs an export that fails, and returns its sentence. */
async function fails(line: string): Promise<string> {
  const { exitCode, stdout, stderr } = await run(line)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  return stderr.trimEnd()
}

test('CSV: a header, every flow in order, and last the totals, each with all columns', async () => {
  const file = newFile('export.csv')
  const statement = JSON.parse(await text(`${exported} --json --out ${file}`))
  const written = await readFile(file, 'utf8')
  const sha256 = createHash('sha256').update(written).digest('hex')
  const counts = { flowCount: deposits + 1, firstSequence: 1, lastSequence: deposits + 1 }
  expect(statement).toMatchObject({ file, opening: '0.00', closing, totalIn, totalOut, ...counts, sha256 })
  expect(written.endsWith('\r\n')).toBe(true)
  const [header, ...rows] = written
    .trimEnd()
    .split('\r\n')
    .map(line => line.split(','))
  expect(header!.slice(0, 6)).toEqual(['sequence', 'createdAt', 'direction', 'type', 'amount', 'balanceAfter'])
  const flows = rows.slice(0, -4)
  expect(flows.map(([sequence]) => Number(sequence))).toEqual(flows.map((_, at) => at + 1))
  expect(flows.at(-1)!.slice(2, 7)).toEqual(['OUT', 'WITHDRAWAL', '155', closing, 'USD'])
  expect(rows.slice(-4)).toEqual([
    ['', statement.from, '', 'OPENING', '', '0.00', 'USD', '', '', ''],
    ['', '', 'IN', 'TOTAL', totalIn, '', 'USD', '', '', ''],
    ['', '', 'OUT', 'TOTAL', totalOut, '', 'USD', '', '', ''],
    ['', statement.to, '', 'CLOSING', '', closing, 'USD', '', '', ''],
  ])
})

test('JSON Lines: every flow as the API returns it, and last the statement', async () => {
  const file = newFile('export.jsonl')
  const shown = await text(`${exported} --out ${file}`)
  expect(shown).toContain(`Wrote 1051 flows of wallet ${walletId} from `)
  expect(shown).toContain(`\nOpening  0.00 USD\nIn       ${totalIn}\nOut      ${totalOut}\nClosing  ${closing}\n`)
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  const { statement } = JSON.parse(lines.pop()!)
  expect(statement).toMatchObject({ walletId, opening: '0.00', closing, totalIn, totalOut, flowCount: deposits + 1 })
  expect(lines.map(line => JSON.parse(line).sequence)).toEqual(lines.map((_, at) => at + 1))
  const range = { from: new Date(statement.from), to: new Date(statement.to) }
  const caller = { requestId: 'test' }
  const { totalIn: summed } = await system.admin.wallets.statement.query({ workspaceId, walletId, caller, ...range })
  expect(summed.toFixed(2)).toBe(totalIn)
})

test('never overwrites a file, and leaves none of a failed export', async () => {
  const file = newFile('kept')
  await writeFile(file, 'precious')
  expect(await fails(`${exported} --out ${file}`)).toBe(
    `${file} already exists, and exports are not overwritten: choose another name with --out.`,
  )
  expect(await readFile(file, 'utf8')).toBe('precious')
  const busy = newFile('busy')
  await writeFile(`${busy}.part`, 'half')
  expect(await fails(`${exported} --out ${busy}`)).toBe(
    `${busy}.part exists, which another command is writing or has left: wait for it, or delete that file.`,
  )

  const cut = newFile('cut')
  const path = await startFaultProxy(Number(new URL(system.coreUrl).port))
  void path.fail({ in: 'answer', at: 'flw_', passes: 'none', by: 'reset' })
  const ran = await run(`${exported} --out ${cut}`, path.url)
  path.cut()
  expect(ran.exitCode).toBe(1)
  const late = newFile('late')
  expect(await fails(`${exported.replace('--to 1m', '--to 1s')} --out ${late}`)).toMatch(
    /^--to must be at least 30 seconds ago: give a time up to .*Z\.$/,
  )
  expect(await fails(`${exported.replace('--from 2h', '--from 30s')} --out ${late}`)).toMatch(
    / is after --to .*: swap them\.$/,
  )
  const other = `statement export --workspace ${workspaceId} --wallet wal_01k9x5zq3sf4x9vtgkz3b8cdef --from 2h --to 1m`
  expect(await fails(`${other} --out ${late}`)).toBe('The workspace has no such wallet: check both IDs.')
  for (const left of [busy, cut, `${cut}.part`, late, `${late}.part`]) expect(existsSync(left), left).toBe(false)
})

test('an altered balance fails the export, and names the flow', async () => {
  const { walletId } = await newWallet('Altered')
  for (const amount of ['1', '2', '3']) await deposit(amount, walletId)
  const wallet = uuidFromId('wallet', walletId)
  await execute(
    system.database.ownerUrl,
    `set session_replication_role = replica; update transfer set created_at = created_at - interval '1 hour',
       target_balance = case target_sequence when 2 then 30 else target_balance end where target_wallet_id = '${wallet}'`,
  )
  const file = newFile('altered')
  const command = `statement export --workspace ${workspaceId} --wallet ${walletId} --from 2h --to 1m --out ${file}`
  expect(await fails(command)).toMatch(/^Flow 2 does not continue the balance before it/)
  expect(existsSync(file)).toBe(false)
})
