import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import {
  type CoreClient,
  reopenLedger,
  sealLines,
  type VerifyProgress,
  verifyLedger,
} from '@workspace-wallet/core/client'
import {
  type FundingReceipt,
  formatBalance,
  type KeyRecord,
  type SealFindings,
  type SealPart,
  type VerifyReport,
  type Wallet,
} from '@workspace-wallet/core/contract'
import { auditCommands } from './audit-commands.ts'
import { type Command, command } from './command.ts'
import type { ValueFlag } from './flags.ts'
import { kekCommands } from './kek-commands.ts'
import type { Progress } from './progress.ts'
import { readSealFile, writeSealFile } from './seal-file.ts'
import { isOutcomeUnknown, wasCutOff } from './sentences.ts'
import { table } from './table.ts'
import {
  parseAmount,
  parseBizId,
  parseCurrency,
  parseExpiry,
  parseFile,
  parseGrace,
  parseId,
  parseName,
  parseNewExpiry,
  parseScopes,
  parseUser,
  splitList,
} from './values.ts'

const workspace = { value: 'wsp_…', help: 'the workspace', required: true, parse: parseId('workspace') } as const
const wallet = { value: 'wal_…', help: 'the wallet', required: true, parse: parseId('wallet') } as const
const key = { value: 'ak_…', help: 'the API key', required: true, parse: parseId('apiKey') } as const
const user = { value: 'USER', help: 'the member, by a name of your own', required: true, parse: parseUser } as const
const scopes = {
  value: 'a,b',
  help: 'what the key may do: wallet:read, transfer:read, transfer:create',
  required: true,
  parse: parseScopes,
} as const
const ips = {
  value: 'CIDR,…',
  help: 'addresses and blocks the key may be used from; empty admits all',
  parse: splitList,
} satisfies ValueFlag

const workspaceCommands = [
  command({
    noun: 'workspace',
    verb: 'create',
    help: 'make a workspace',
    flags: { name: { value: 'NAME', help: 'what people call it', required: true, parse: parseName } },
    examples: ['--name Acme'],
    run: (core, { name }) => core.workspaces.create.mutate({ name }),
    print: ({ workspaceId }) => `Workspace ${workspaceId} is there.`,
  }),
  command({
    noun: 'workspace',
    verb: 'delete',
    help: 'delete a workspace: its keys stop at once, its history stays',
    flags: { workspace, force: { help: 'even though wallets hold money' } },
    examples: ['--workspace wsp_…', '--workspace wsp_… --force'],
    async run(core, { workspace: workspaceId, force }) {
      await core.workspaces.delete.mutate({ workspaceId, force })
      return { workspaceId, deleted: true }
    },
    print: ({ workspaceId }) => `Workspace ${workspaceId} is deleted; its history stays.`,
  }),
]

const memberCommands = [
  command({
    noun: 'member',
    verb: 'add',
    help: 'make somebody a member of a workspace',
    flags: { workspace, user },
    examples: ['--workspace wsp_… --user ada@example.com'],
    async run(core, { workspace: workspaceId, user: userId }) {
      await core.members.add.mutate({ workspaceId, userId })
      return { workspaceId, userId }
    },
    print: ({ workspaceId, userId }) => `${userId} is a member of ${workspaceId}.`,
  }),
  command({
    noun: 'member',
    verb: 'remove',
    help: "end a membership: the member's keys stop at once",
    flags: { workspace, user },
    examples: ['--workspace wsp_… --user ada@example.com'],
    async run(core, { workspace: workspaceId, user: userId }) {
      await core.members.remove.mutate({ workspaceId, userId })
      return { workspaceId, userId }
    },
    print: ({ workspaceId, userId }) => `${userId} is no longer a member of ${workspaceId}.`,
  }),
]

const keyCommands = [
  command({
    noun: 'key',
    verb: 'create',
    help: 'issue an API key to a member, and show its secret once',
    flags: {
      workspace,
      owner: { ...user, help: 'the member who holds it' },
      scopes,
      ips,
      name: { value: 'NAME', help: 'what people call it', parse: parseName },
      expires: { value: 'WHEN', help: 'a date, a time with its zone, or a duration such as 90d', parse: parseExpiry },
    },
    examples: [
      '--workspace wsp_… --owner ada@example.com --scopes wallet:read,transfer:read',
      '--workspace wsp_… --owner ada@example.com --scopes transfer:create --ips 203.0.113.0/24 --expires 90d',
    ],
    run: (core, { workspace: workspaceId, owner, name, ips: ipAllowlist, expires, ...given }) =>
      core.apiKeys.create.mutate({
        workspaceId,
        ownerUserId: owner,
        scopes: given.scopes,
        ipAllowlist,
        name,
        expiresAt: expires,
      }),
    print: printIssuedKey,
  }),
  command({
    noun: 'key',
    verb: 'list',
    help: 'list API keys, never their secrets',
    flags: {
      workspace: { ...workspace, help: 'only its keys', required: false },
      key: { ...key, help: 'only this key', required: false },
    },
    examples: ['', '--workspace wsp_…'],
    async run(core, { workspace: workspaceId, key: apiKey }) {
      const keys: KeyRecord[] = []
      for (let after: string | undefined; ; ) {
        const page = await core.apiKeys.list.query({ workspaceId, apiKey, after, limit: 500 })
        keys.push(...page.keys)
        if (page.next === null) break
        after = page.next
      }
      if (apiKey !== undefined && keys.length === 0) throw new Error(`There is no key ${apiKey}.`)
      return { keys }
    },
    print: ({ keys }) => (keys.length > 0 ? printKeys(keys) : 'There are no keys.'),
  }),
  keyCommand('disable', 'stop a key at once, until it is enabled again', 'is disabled', (core, apiKey) =>
    core.apiKeys.disable.mutate({ apiKey }),
  ),
  keyCommand('enable', 'let a disabled key be used again', 'is enabled', (core, apiKey) =>
    core.apiKeys.enable.mutate({ apiKey }),
  ),
  keyCommand('delete', 'delete a key, for ever', 'is deleted', (core, apiKey) =>
    core.apiKeys.delete.mutate({ apiKey }),
  ),
  command({
    noun: 'key',
    verb: 'rotate',
    help: 'give a key a new secret, and show it once',
    flags: {
      key,
      grace: {
        value: 'DURATION',
        help: 'how long the old secret works beside it; without, it stops at once',
        parse: parseGrace,
      },
      force: { help: 'even though that ends the grace of an earlier rotation' },
    },
    examples: ['--key ak_…', '--key ak_… --grace 24h'],
    run: (core, { key: apiKey, grace: graceMs, force }) => core.apiKeys.rotate.mutate({ apiKey, graceMs, force }),
    print: printIssuedKey,
  }),
  command({
    noun: 'key',
    verb: 'set-expiry',
    help: 'let a key end at a time, at once, or never',
    flags: {
      key,
      expires: {
        value: 'WHEN',
        help: 'a date, a time with its zone, a duration such as 90d, now, or never',
        required: true,
        parse: parseNewExpiry,
      },
    },
    examples: ['--key ak_… --expires 90d', '--key ak_… --expires now', '--key ak_… --expires never'],
    async run(core, { key: apiKey, expires }) {
      const { expiresAt } = await core.apiKeys.setExpiry.mutate({ apiKey, expiresAt: expires })
      return { apiKey, expiresAt }
    },
    print: ({ apiKey, expiresAt }) => `Key ${apiKey} ${expirySentence(expiresAt)}.`,
  }),
  command({
    noun: 'key',
    verb: 'set-scopes',
    help: 'replace the scopes of a key',
    flags: { key, scopes },
    examples: ['--key ak_… --scopes wallet:read,transfer:create'],
    async run(core, { key: apiKey, scopes: granted }) {
      await core.apiKeys.setScopes.mutate({ apiKey, scopes: granted })
      return { apiKey, scopes: granted }
    },
    print: ({ apiKey, scopes: granted }) => `Key ${apiKey} has the scopes ${granted.join(', ')}.`,
  }),
  command({
    noun: 'key',
    verb: 'set-ips',
    help: 'replace the addresses a key may be used from',
    flags: { key, ips: { ...ips, required: true } },
    examples: ['--key ak_… --ips 203.0.113.7,2001:db8::/32', "--key ak_… --ips ''"],
    async run(core, { key: apiKey, ips: ipAllowlist }) {
      await core.apiKeys.setIps.mutate({ apiKey, ipAllowlist })
      return { apiKey, ipAllowlist }
    },
    print: ({ apiKey, ipAllowlist }) =>
      `Key ${apiKey} may be used from ${ipAllowlist.length > 0 ? ipAllowlist.join(', ') : 'everywhere'}.`,
  }),
]

const walletCommands = [
  command({
    noun: 'wallet',
    verb: 'create',
    help: 'make an empty wallet',
    flags: {
      workspace,
      currency: { value: 'CODE', help: 'its currency, such as USD', required: true, parse: parseCurrency },
      name: { value: 'NAME', help: 'what people call it', required: true, parse: parseName },
    },
    examples: ['--workspace wsp_… --currency USD --name Main'],
    async run(core, { workspace: workspaceId, currency, name }) {
      const { walletId } = await core.wallets.create.mutate({ workspaceId, currency, name })
      return { walletId }
    },
    print: ({ walletId }) => `Wallet ${walletId} is there, and empty.`,
  }),
  fundingCommand('deposit', 'bring money from outside into a wallet', 'entered'),
  fundingCommand('withdraw', 'take money out of a wallet and the workspace', 'left'),
  walletCommand('freeze', 'let a wallet neither pay nor receive', (core, input) => core.wallets.freeze.mutate(input)),
  walletCommand('unfreeze', 'let a frozen wallet pay and receive again', (core, input) =>
    core.wallets.unfreeze.mutate(input),
  ),
  walletCommand('close', 'close an empty wallet, for ever', (core, input) => core.wallets.close.mutate(input)),
]

const ledgerCommands = [
  command({
    noun: 'ledger',
    verb: 'verify',
    help: 'check every sum, sequence and chain of the ledger; exits 1 when one is broken',
    flags: {
      workspace: { ...workspace, help: 'only this workspace', required: false },
      against: { value: 'FILE', help: 'a seal (see ledger seal), which the ledger must continue', parse: parseFile },
    },
    examples: ['', '--workspace wsp_…', '--against ledger-2026-11.seal'],
    run: (core, { workspace: workspaceId, against }, progress) => verify(core, workspaceId, against, progress),
    print: printReport,
    complaint: complaintOf,
  }),
  command({
    noun: 'ledger',
    verb: 'halted',
    help: 'list workspaces that take no postings, because their ledger was written past',
    flags: {},
    examples: [''],
    run: core => core.ledger.halted.query(),
    print: ({ ledgers }) =>
      ledgers.length > 0
        ? table(
            ['WORKSPACE', 'REASON'],
            ledgers.map(({ workspaceId, reason }) => [workspaceId, reason]),
          )
        : 'No workspace is halted.',
  }),
  command({
    noun: 'ledger',
    verb: 'reopen',
    help: 'verify a halted workspace, and let it post again when it is sound',
    flags: { workspace, force: { help: 'even though it breaks its rules' } },
    examples: ['--workspace wsp_…', '--workspace wsp_… --force'],
    async run(core, { workspace: workspaceId, force }, progress) {
      try {
        const { reopened, report } = await reopenLedger(core, { workspaceId, force }, now =>
          showProgress(progress, now),
        )
        return { workspaceId, reopened, ...report }
      } catch (error) {
        throw wasCutOff(error) ? cutOff('verification', error) : error
      }
    },
    print: ({ workspaceId, reopened, ...report }) =>
      `${printReport(report)}\n${workspaceId} ${reopened ? 'takes postings again' : 'stays halted'}.`,
    complaint: ({ workspaceId, reopened, violations, more }) =>
      reopened
        ? undefined
        : `${workspaceId} breaks its rules in ${violations.length + more} place(s): mend it first (docs/operations.md), or give --force.`,
  }),
  command({
    noun: 'ledger',
    verb: 'seal',
    help: 'write a signed statement of how far every chain has come, for an auditor to keep',
    flags: {
      out: { value: 'FILE', help: 'a new file; without, one that is named for the time', parse: parseFile },
      workspace: { ...workspace, help: 'only this workspace', required: false },
    },
    examples: ['--out ledger-2026-11.seal', '--workspace wsp_…'],
    run: (core, { out, workspace: workspaceId }, progress) => seal(core, out, workspaceId, progress),
    print: ({ file, workspaceId, wallets, sealedAt, sha256 }) =>
      `${wallets} wallets of ${workspaceId ?? 'all workspaces'} were sealed at ${sealedAt}.

File     ${file}
SHA-256  ${sha256}

Give it to somebody who cannot change the database. ledger verify --against ${file} shows that no history before it was changed.`,
  }),
]

/** Everything that `npm run admin` can do. */
export const commands: readonly Command[] = [
  ...workspaceCommands,
  ...memberCommands,
  ...keyCommands,
  ...walletCommands,
  ...ledgerCommands,
  ...auditCommands,
  ...kekCommands,
]

function keyCommand(
  verb: string,
  help: string,
  done: string,
  act: (core: CoreClient, apiKey: string) => Promise<void>,
): Command {
  return command({
    noun: 'key',
    verb,
    help,
    flags: { key },
    examples: ['--key ak_…'],
    async run(core, { key: apiKey }) {
      await act(core, apiKey)
      return { apiKey }
    },
    print: ({ apiKey }) => `Key ${apiKey} ${done}.`,
  })
}

function walletCommand(
  verb: string,
  help: string,
  act: (core: CoreClient, input: { workspaceId: string; walletId: string }) => Promise<Wallet>,
): Command {
  return command({
    noun: 'wallet',
    verb,
    help,
    flags: { workspace, wallet },
    examples: ['--workspace wsp_… --wallet wal_…'],
    async run(core, { workspace: workspaceId, wallet: walletId }) {
      const record = await act(core, { workspaceId, walletId })
      return { ...record, balance: formatBalance(record.balance, record.currency) }
    },
    print: ({ walletId, status }) => `Wallet ${walletId} is ${status}.`,
  })
}

function fundingCommand(verb: 'deposit' | 'withdraw', help: string, moved: string): Command {
  return command({
    noun: 'wallet',
    verb,
    help,
    flags: {
      workspace,
      wallet,
      amount: { value: 'AMOUNT', help: "in the wallet's currency, such as 100.50", required: true, parse: parseAmount },
      'biz-id': {
        value: 'ID',
        help: 'a name of your own, under which it is done once however often you ask',
        parse: parseBizId,
      },
    },
    examples: [
      '--workspace wsp_… --wallet wal_… --amount 100.50',
      '--workspace wsp_… --wallet wal_… --amount 100.50 --biz-id invoice-2026-0042',
    ],
    async run(core, { workspace: workspaceId, wallet: walletId, amount, ...given }) {
      // Named before it is sent: should the answer be lost, the same command can be given again.
      const bizId = given['biz-id'] ?? `${verb}-${randomUUID()}`
      try {
        const receipt = await core.wallets[verb].mutate({ workspaceId, walletId, amount, bizId })
        return { ...receipt, ...(await balanceNow(core, workspaceId, receipt)) }
      } catch (error) {
        if (!isOutcomeUnknown(error)) throw error
        throw new Error(
          `Whether the ${verb} was done is not known: give the same command again with --biz-id ${bizId}, which does it once at most.`,
          { cause: error },
        )
      }
    },
    print: ({ amount, currency, walletId, balance, bizId }) =>
      `${amount} ${currency} ${moved} ${walletId} under the bizId ${bizId}${balance === undefined ? '' : `; it now holds ${balance} ${currency}`}.`,
  })
}

/** The money has moved: that the balance cannot be read now is no reason to say otherwise. */
async function balanceNow(
  core: CoreClient,
  workspaceId: string,
  { walletId, currency }: FundingReceipt,
): Promise<{ balance?: string }> {
  try {
    const { balance } = await core.wallets.balance.query({ workspaceId, walletId, caller: { requestId: randomUUID() } })
    return { balance: formatBalance(balance, currency) }
  } catch {
    return {}
  }
}

async function verify(
  core: CoreClient,
  workspaceId: string | undefined,
  against: string | undefined,
  progress: Progress,
): Promise<VerifyReport> {
  try {
    return await verifyLedger(core, {
      workspaceId,
      seal: against === undefined ? undefined : readSealFile(against),
      onProgress: now => showProgress(progress, now),
    })
  } catch (error) {
    throw wasCutOff(error) ? cutOff('verification', error) : error
  }
}

function showProgress(progress: Progress, now: VerifyProgress): void {
  if (now.kind === 'seal') progress.show(now.wallets, null, 'wallets compared with the seal')
  else progress.show(now.flows, now.totalFlows, 'flows')
}

async function seal(core: CoreClient, out: string | undefined, workspaceId: string | undefined, progress: Progress) {
  const file = resolve(out ?? `ledger-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}.seal`)
  let wallets = 0
  let last: SealPart | undefined
  async function* lines() {
    for await (const { part, line } of sealLines(core, { workspaceId })) {
      yield line
      wallets += part.chains.length
      last = part
      progress.show(wallets, null, 'wallets sealed')
    }
  }
  try {
    const sha256 = await writeSealFile(file, lines())
    const { sealId, sealedAt } = last!
    return { file, sealId, sealedAt, workspaceId: last!.workspaceId, wallets, sha256 }
  } catch (error) {
    throw wasCutOff(error) ? cutOff('seal', error) : error
  }
}

function cutOff(what: string, cause: unknown): Error {
  return new Error(`The ${what} was cut off before its end: run it again, and see the log of core.`, { cause })
}

function printReport({ workspaces, wallets, transfers, flows, violations, more, seal: sealed }: VerifyReport): string {
  const scope = `${workspaces} workspace(s), ${wallets} wallets, ${transfers} transfers, ${flows} flows`
  const isSound = violations.length === 0
  const about = sealed?.fault === null ? `\n${printSeal(sealed, isSound)}` : ''
  if (isSound) return `The ledger is sound: ${scope}.${about}`
  const rows = violations.map(({ rule, message, ids }) => [
    rule,
    Object.entries(ids)
      .map(([name, id]) => `${name} ${id}`)
      .join(', '),
    message,
  ])
  const rest = more > 0 ? `\nand ${more} more` : ''
  return `${table(['RULE', 'WHERE', 'WHAT'], rows)}${rest}\n\nChecked ${scope}.${about}`
}

function printSeal({ sealedAt, workspaceId, wallets }: SealFindings, isSound: boolean): string {
  const taken = `the seal of ${sealedAt} (${workspaceId ?? 'all workspaces'}, ${wallets} wallets)`
  return isSound ? `It continues ${taken}: nothing before that was changed or cut off.` : `Compared with ${taken}.`
}

function complaintOf({ ok, violations, more, seal: sealed }: VerifyReport): string | undefined {
  if (ok) return undefined
  const found = violations.length + more
  const fault = sealed?.fault
  const aboutSeal = fault
    ? `The seal proves nothing, because ${fault}: give the file as it was written, with the scope it was written for.`
    : ''
  if (found === 0) return aboutSeal
  return `The ledger breaks its rules in ${found} place(s): post nothing until you know why. ${aboutSeal}`.trimEnd()
}

function printIssuedKey({ apiKey, apiSecret }: { apiKey: string; apiSecret: string }): string {
  return `API key     ${apiKey}\nAPI secret  ${apiSecret}\n\nKeep the secret now: it is not shown again.`
}

function expirySentence(expiresAt: Date | null): string {
  if (!expiresAt) return 'never expires'
  return expiresAt > new Date() ? `expires at ${expiresAt.toISOString()}` : 'has expired'
}

function printKeys(keys: KeyRecord[]): string {
  const rows = keys.map(each => [
    each.apiKey,
    each.status,
    each.workspaceId,
    each.ownerUserId,
    each.scopes.join(','),
    each.ipAllowlist.join(',') || 'any',
    each.expiresAt?.toISOString() ?? 'never',
    each.oldSecretUntil?.toISOString() ?? 'no',
    each.lastUsedAt?.toISOString() ?? 'never',
    each.name,
  ])
  const headings = [
    'KEY',
    'STATUS',
    'WORKSPACE',
    'OWNER',
    'SCOPES',
    'FROM',
    'EXPIRES',
    'OLD SECRET',
    'LAST USED',
    'NAME',
  ]
  return table(headings, rows)
}
