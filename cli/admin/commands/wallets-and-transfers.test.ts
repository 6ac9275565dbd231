import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { describe, expect, test } from 'vitest'
import {
  adminToken,
  balanceOf,
  core,
  coreUrl,
  dataDir,
  fails,
  id,
  isoTime,
  json,
  newWallet,
  newWallets,
  newWorkspace,
  pay,
  reserve,
  run,
  sentence,
  testEveryCommandOf,
  text,
  words,
} from '../../../test/setup/admin.ts'
import { startFaultProxy } from '../../../test/setup/fault-proxy.ts'

/** The head of the answers to the first batch of a connection. */
const answerHead = packFrame(frameKinds.answers, 1).toString('latin1', 0, 5)

describe('wallets', () => {
  test('wallet create creates an empty, active wallet', async () => {
    const workspaceId = await newWorkspace()
    const made = await json(`wallet create --workspace ${workspaceId} --currency USD --name`, 'Petty cash')
    expect(made).toEqual({ walletId: id('wal'), bizId: null })
    expect(await balanceOf(workspaceId, String(made.walletId))).toBe('0.00')
    expect(await text(`wallet create --workspace ${workspaceId} --currency JPY --name Yen`)).toMatch(
      /^Created wallet wal_\w{26}\.\n$/,
    )
    const command = `wallet create --workspace ${workspaceId} --name Main --currency`
    const named = await json(`${command} USD --biz-id main`)
    expect(named).toEqual({ walletId: id('wal'), bizId: 'main' })
    expect(await text(`${command} USD --biz-id main`)).toBe(`Created wallet ${named.walletId}, with the bizId main.\n`)
    expect(await fails(1, `${command} EUR --biz-id main`)).toContain('The bizId main belongs to another')
    expect(await fails(2, `${command} USD --biz-id ${named.walletId}`)).toContain('not be the ID of a wallet')
    expect(await fails(2, `${command} usd`)).toContain('in upper case')
    expect(await fails(2, `${command} XYZ`)).toContain('must be a currency code')
  })

  test('wallet deposit and withdraw move money, and print the bizId and the balance', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const flags = `--workspace ${workspaceId} --wallet ${walletId}`
    const receipt = { transferId: id('trf'), walletId, currency: 'USD', holdId: null, createdAt: isoTime }
    expect(await json(`wallet deposit ${flags} --amount 100.5`)).toEqual({
      ...receipt,
      type: 'DEPOSIT',
      amount: '100.5',
      bizId: expect.stringMatching(/^deposit-[0-9a-f-]{36}$/),
      balance: '100.50',
    })
    expect(await json(`wallet withdraw ${flags} --amount 0.25 --biz-id payout-1`)).toEqual({
      ...receipt,
      type: 'WITHDRAWAL',
      amount: '0.25',
      bizId: 'payout-1',
      balance: '100.25',
    })
    expect(await text(`wallet deposit ${flags} --amount 10 --biz-id topup-1`)).toBe(
      `Deposited 10 USD into wallet ${walletId}, with the bizId topup-1. The balance is now 110.25 USD.\n`,
    )
    expect(await text(`wallet withdraw ${flags} --amount 0.25`)).toMatch(
      /^Withdrew 0\.25 USD from wallet wal_\w{26}, with the bizId withdraw-[0-9a-f-]{36}\. The balance is now 110\.00 USD\.\n$/,
    )
  })

  test('a bizId moves money once, and cannot be used for another amount', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const command = `wallet deposit --workspace ${workspaceId} --wallet ${walletId} --biz-id once`
    const first = await json(`${command} --amount 7`)
    expect(await json(`${command} --amount 7.00`)).toEqual(first)
    expect(await fails(1, `${command} --amount 8`)).toContain('The bizId once belongs to another deposit')
    expect(await balanceOf(workspaceId, walletId)).toBe('7.00')
  })

  test('a deposit whose answer is lost prints the bizId with which it can be repeated', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const command = `wallet deposit --workspace ${workspaceId} --wallet ${walletId} --amount 3`
    // Core answers after the commit, so the deposit is done.
    const path = await startFaultProxy(Number(new URL(coreUrl).port))
    void path.fail({ in: 'answer', at: answerHead, passes: 'none', by: 'reset' })
    const through = { CORE_URL: path.url, CORE_TOKEN: adminToken }
    const lost = sentence(1, await run(words(command), through))
    path.cut()
    const [, bizId] = /repeat the command with --biz-id (\S+),/.exec(lost) ?? []
    expect(bizId).toMatch(/^deposit-/)
    expect(await json(`${command} --biz-id ${bizId}`)).toMatchObject({ bizId, balance: '3.00' })
  })

  test('invalid amounts and insufficient balances are rejected', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const yen = await newWallet(workspaceId, 'JPY')
    const on = (wallet: string) => `--workspace ${workspaceId} --wallet ${wallet} --amount`
    expect(await fails(2, `wallet deposit ${on(walletId)} -5`)).toContain(
      '--amount must be an amount greater than zero',
    )
    expect(await fails(1, `wallet deposit ${on(walletId)} 1.005`)).toBe(
      '--amount has too many decimals: give at most 2, like its currency.',
    )
    expect(await fails(1, `wallet deposit ${on(yen)} 1.5`)).toContain('give a whole number')
    expect(await fails(1, `wallet withdraw ${on(walletId)} 1`)).toContain('is lower than the amount')
    expect(await fails(2, `wallet deposit ${on(walletId)} 1 --biz-id wallet`)).toContain('be neither "wallet"')
    expect(await balanceOf(workspaceId, walletId)).toBe('0.00')
  })

  test('wallet freeze, unfreeze and close', async () => {
    const workspaceId = await newWorkspace()
    const walletId = await newWallet(workspaceId)
    const flags = `--workspace ${workspaceId} --wallet ${walletId}`
    await json(`wallet deposit ${flags} --amount 5`)
    const times = { createdAt: isoTime, updatedAt: isoTime }
    const record = { walletId, bizId: null, name: 'Main', currency: 'USD', balance: '5.00', ...times }
    expect(await json(`wallet freeze ${flags}`)).toEqual({ ...record, status: 'FROZEN' })
    expect(await text(`wallet freeze ${flags}`)).toBe(
      `Wallet ${walletId} is now FROZEN: only operators can unfreeze or close it.\n`,
    )
    expect(await fails(1, `wallet withdraw ${flags} --amount 5`)).toBe('The wallet is frozen: unfreeze it first.')
    expect(await json(`wallet unfreeze ${flags}`)).toEqual({ ...record, status: 'ACTIVE' })
    expect(await fails(1, `wallet close ${flags}`)).toContain(
      'holds money: withdraw or transfer it before you close the wallet',
    )
    await json(`wallet withdraw ${flags} --amount 5`)
    expect(await text(`wallet close ${flags}`)).toBe(`Wallet ${walletId} is now CLOSED.\n`)
    expect(await fails(1, `wallet unfreeze ${flags}`)).toContain('a closed wallet cannot be reopened')
    expect(await fails(1, `wallet deposit ${flags} --amount 5`)).toContain('The wallet is closed')
  })

  test("another workspace's wallet is not found", async () => {
    const walletId = await newWallet(await newWorkspace())
    const flags = `--workspace ${await newWorkspace()} --wallet ${walletId}`
    for (const command of [`wallet deposit ${flags} --amount 1`, `wallet freeze ${flags}`, `wallet close ${flags}`])
      expect(await fails(1, command)).toBe('The workspace has no such wallet: check both IDs.')
  })
})

describe('transfers, holds and limits', () => {
  test('transfer reverse returns a part of a transfer once, and at most all of it', async () => {
    const wallets = await newWallets()
    const { workspaceId, source, target } = wallets
    const { transferId } = await pay(wallets, 'order-1')
    const command = (amount: string, bizId: string, currency = 'USD') =>
      `transfer reverse --workspace ${workspaceId} --transfer order-1 --amount ${amount} --currency ${currency} --biz-id ${bizId}`
    const reversal = await json(`${command('10.5', 'refund-1')} --remark`, 'damaged goods')
    expect(reversal).toMatchObject({
      transferId: id('trf'),
      bizId: 'refund-1',
      amount: '10.5',
      sourceWalletId: target,
      targetWalletId: source,
      remark: 'damaged goods',
      reversesTransferId: transferId,
      reversedAmount: '0.00',
    })
    expect(await text(command('10.50', 'refund-1'))).toBe(
      `Returned 10.5 USD of transfer ${transferId} from wallet ${target} to wallet ${source}: transfer ${reversal.transferId}, with the bizId refund-1.\n`,
    )
    expect(await balanceOf(workspaceId, target)).toBe('19.50')
    expect(await fails(1, command('19.51', 'refund-2'))).toBe(
      'Only 19.50 of the transfer is not reversed yet: give a lower --amount.',
    )
    expect(await fails(1, command('10', 'order-1'))).toContain('The bizId order-1 belongs to another')
    expect(await fails(1, command('1', 'refund-2', 'EUR'))).toContain('correct --currency')
    expect(await fails(1, command('1.001', 'refund-2'))).toContain('at most 2, like its currency')
    expect(await fails(1, command('1', 'refund-2').replace('order-1', 'refund-1'))).toContain('is a reversal itself')
    expect(await fails(1, command('1', 'refund-2').replace('order-1', 'start'))).toContain('cannot be reversed')
    expect(await fails(2, `transfer reverse --workspace ${workspaceId}`)).toContain('--biz-id ID')
    expect(await balanceOf(workspaceId, target)).toBe('19.50')
  })

  test('a reversal whose answer is lost can be repeated', async () => {
    const wallets = await newWallets()
    await pay(wallets, 'order-1')
    const command = `transfer reverse --workspace ${wallets.workspaceId} --transfer order-1 --amount 30 --currency USD --biz-id refund`
    const path = await startFaultProxy(Number(new URL(coreUrl).port))
    void path.fail({ in: 'answer', at: answerHead, passes: 'none', by: 'reset' })
    const lost = sentence(1, await run(words(command), { CORE_URL: path.url, CORE_TOKEN: adminToken }))
    path.cut()
    expect(lost).toBe(
      'It is unknown whether the money was moved: repeat the command with --biz-id refund, which moves it at most once.',
    )
    expect(await json(command)).toMatchObject({ bizId: 'refund' })
    expect(await balanceOf(wallets.workspaceId, wallets.source)).toBe('100.00')
  })

  test('hold list prints the holds of a workspace or a wallet, and hold release ends one', async () => {
    const wallets = await newWallets()
    const { workspaceId, source, target } = wallets
    const first = await reserve(wallets, 'booking-1', '40')
    const second = await reserve(wallets, 'booking-2', '20.00')
    const command = `hold list --workspace ${workspaceId}`
    const record = {
      walletId: source,
      currency: 'USD',
      status: 'OPEN',
      capturedAmount: '0.00',
      expiresAt: isoTime,
      reference: null,
      remark: null,
      createdAt: isoTime,
      updatedAt: isoTime,
    }
    const listed = [
      { holdId: second.holdId, bizId: 'booking-2', amount: '20.00', remainingAmount: '20.00', ...record },
      { holdId: first.holdId, bizId: 'booking-1', amount: '40', remainingAmount: '40.00', ...record },
    ]
    expect(await json(command)).toEqual({ holds: listed, total: 2 })
    expect(await json(`${command} --wallet ${source} --limit 1`)).toEqual({ holds: [listed[0]], total: 2 })
    expect(await json(`${command} --wallet ${target}`)).toEqual({ holds: [], total: 0 })
    const lines = (await text(`${command} --limit 1`)).trimEnd().split('\n')
    expect(lines[0]).toMatch(/^HOLD +STATUS +WALLET +CURRENCY +AMOUNT +CAPTURED +REMAINING +EXPIRES +BIZ ID$/)
    expect(lines[1]).toMatch(
      new RegExp(`^${second.holdId} +OPEN +${source} +USD +20\\.00 +0\\.00 +20\\.00 +\\S+Z +booking-2$`),
    )
    expect(lines.slice(2)).toEqual(['', 'There are 2 holds in all. To list more, add --limit 2.'])

    await pay(wallets, 'capture', { holdId: 'booking-1' })
    const release = `hold release --workspace ${workspaceId} --hold`
    expect(await fails(1, `${release} booking-1`)).toBe('The hold is CAPTURED, so nothing remains of it to release.')
    const released = { ...listed[0], status: 'RELEASED', remainingAmount: '0.00' }
    expect(await json(`${release} ${second.holdId}`)).toEqual(released)
    expect(await text(`${release} booking-2`)).toBe(
      `Hold ${second.holdId} is RELEASED: of 20.00 USD, 0.00 was captured, and the rest is available in wallet ${source} again.\n`,
    )
    expect(await text(`${command} --status OPEN`)).toBe('No holds found.\n')
    expect(await json(`${command} --status RELEASED`)).toEqual({ holds: [released], total: 1 })
    expect(await fails(1, `${release} booking-3`)).toBe('The workspace has no such hold: check both IDs.')
    expect(await fails(2, `${command} --status RELEASE`)).toContain('did you mean RELEASED?')
    expect(await fails(1, `hold list --workspace ${await newWorkspace()} --wallet ${source}`)).toContain(
      'no such wallet',
    )
  })

  test('limit set, list and clear limit what a key or a wallet may spend', async () => {
    const wallets = await newWallets()
    const { workspaceId, source } = wallets
    const command = `--workspace ${workspaceId} --wallet ${source} --currency USD`
    const limit = {
      apiKey: null,
      walletId: source,
      currency: 'USD',
      perTransfer: '50.00',
      perDay: '80.00',
      spentToday: '0.00',
      resetsAt: expect.stringMatching(/T00:00:00\.000Z$/),
      createdAt: isoTime,
      updatedAt: isoTime,
      isModified: false,
    }
    const set = await json(`limit set ${command} --per-transfer 50 --per-day 80.00`)
    expect(set).toEqual(limit)
    await pay(wallets, 'order-1')
    const listed = (await json(`limit list --workspace ${workspaceId}`)) as { limits: (typeof set)[] }
    // If another day has begun, the transfer may be of the day before.
    const isSameDay = listed.limits[0]?.resetsAt === set.resetsAt
    const spentToday = isSameDay ? '30.00' : expect.stringMatching(/^(0|30)\.00$/)
    expect(listed).toEqual({ limits: [{ ...limit, spentToday }], next: null })
    expect(await text(`limit set ${command} --per-day 80.00`)).toBe(
      `${source} may spend at most 80.00 USD per day from now on.\n`,
    )
    const lines = (await text(`limit list --workspace ${workspaceId}`)).trimEnd().split('\n')
    expect(lines[0]).toMatch(/^KEY OR WALLET +CURRENCY +PER TRANSFER +PER DAY +SPENT TODAY +STATUS$/)
    expect(lines[1]).toMatch(new RegExp(`^${source} +USD +unlimited +80\\.00 +[\\d.]+ +SET$`))
    expect(await text(`limit clear ${command}`)).toBe(`${source} no longer has a limit in USD.\n`)
    expect(await text(`limit list --workspace ${workspaceId}`)).toBe('No limits are set.\n')
    expect(await fails(1, `limit clear ${command}`)).toContain('has no limit in USD')
    expect(await fails(2, `limit set ${command}`)).toContain('--per-transfer, --per-day or both')
    expect(await fails(2, `limit set --workspace ${workspaceId} --currency USD --per-day 1`)).toBe(
      'Set either --key or --wallet.',
    )
    expect(
      await fails(1, `limit set --workspace ${workspaceId} --wallet ${source} --currency EUR --per-day 1`),
    ).toContain('holds USD')
  })
})

test('receipt check refuses what is no receipt; test/receipts.test.ts checks receipts', async () => {
  const file = join(dataDir, 'receipt.txt')
  await writeFile(file, 'paid in full')
  const { exitCode, stdout, stderr } = await run(words(`receipt check --file ${file}`))
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: 'The receipt is not confirmed: do not accept it.\n',
  })
  expect(stdout).toMatch(/^This is not a receipt: /)
  const tooLong = join(dataDir, 'long.txt')
  await writeFile(tooLong, 'x'.repeat(10_000))
  for (const [path, why] of [[tooLong, 'too long'] as const, [`${file}.absent`, 'ENOENT'] as const])
    expect(await fails(1, `receipt check --file ${path}`)).toBe(
      `Cannot read a receipt from ${path} (${why}): give the path of a file with one receipt.`,
    )
})

test('statement export writes a file; cli/statement-export.test.ts has its content', async () => {
  const workspaceId = await newWorkspace()
  const walletId = await newWallet(workspaceId)
  const file = join(dataDir, `export-${randomUUID()}.csv`)
  const command = `statement export --workspace ${workspaceId} --wallet ${walletId} --from 2h --to 1m --out ${file}`
  expect(await json(command)).toMatchObject({ file, flowCount: 0, opening: '0.00', closing: '0.00' })
  expect((await readFile(file, 'utf8')).split('\r\n')).toHaveLength(6)
})

test('wallet search, transfer search and trace, funding list and show, and search find', async () => {
  const workspaceId = await newWorkspace()
  const walletId = await newWallet(workspaceId)
  const given = { workspaceId, walletId, amount: '5', bizId: `in-${randomUUID()}` }
  const { transferId, bizId } = await core.wallets.deposit.mutate(given)
  expect(await json(`wallet search --workspace ${workspaceId} --balance-from 5 --status ACTIVE`)).toMatchObject({
    wallets: [{ walletId, balance: '5.00', held: '0.00' }],
    next: null,
  })
  expect(await text(`wallet search --wallet ${walletId}`)).toContain(
    `${walletId}  ${workspaceId}  ACTIVE  5.00     USD`,
  )
  expect(await json(`transfer search --biz-id ${bizId}`)).toMatchObject({
    transfers: [{ transferId, type: 'DEPOSIT', amount: '5.00', sourceWalletId: null, targetWalletId: walletId }],
  })
  expect(await text(`transfer search --wallet ${walletId} --amount-to 5`)).toMatch(/DEPOSIT +5.00 +USD +outside +wal_/)
  expect(await text('transfer search --biz-id none')).toBe('No transfers found.\n')
  expect(await json(`transfer trace --transfer ${transferId}`)).toMatchObject({
    transfer: { bizId, actor: 'admin:a' },
    target: { walletId, isGenuine: true, balanceAfter: '5.00' },
    receipt: null,
  })
  expect(await text(`transfer trace --transfer ${bizId} --workspace ${workspaceId}`)).toMatch(
    /^DEPOSIT trf_\w+ of 5.00 USD, [\s\S]*Made by {5}admin:a, request "[^"]+"\nFrom {8}outside, flow 1, [\s\S]*: genuine\n$/,
  )
  expect(await fails(1, `transfer trace --transfer ${bizId}`)).toContain('give --workspace, or a transferId')
  expect(await json(`funding list --workspace ${workspaceId}`)).toMatchObject({ transfers: [{ transferId }] })
  expect(await json(`funding show --funding ${transferId}`)).toMatchObject({ bizId, amount: '5.00' })
  expect(await text(`search find --text ${walletId}`)).toMatch(/^KIND +BY +ID +WORKSPACE +SUMMARY\nwallet +id +wal_/)
  expect((await json(`search find --text ${bizId}`)).found).toMatchObject([{ kind: 'transfer', by: 'bizId' }])
  expect(await text('search find --text nothing-has-this-name')).toBe('Nothing found.\n')
})

testEveryCommandOf('wallet', 'transfer', 'funding', 'receipt', 'hold', 'limit', 'statement', 'search')
