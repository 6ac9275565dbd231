import { type KeyRecord, scopes as scopeNames } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { ValueFlag } from '../../command-line/flags.ts'
import { type Command, command } from '../command.ts'
import { table } from '../table.ts'
import { parseExpiry, parseGrace, parseId, parseName, parseNewExpiry, parseScopes, splitList } from '../values.ts'
import { reason, user, workspace } from './id-flags.ts'

const key = { value: 'ak_…', help: 'ID of the API key', required: true, parse: parseId('apiKey') } as const
const scopes = {
  value: 'SCOPE,…',
  help: `what the key may do: ${scopeNames.join(', ')}`,
  required: true,
  choices: scopeNames,
  parse: parseScopes,
} as const
const ips = {
  value: 'CIDR,…',
  help: 'IP addresses and CIDR blocks that the key may be used from; an empty list allows all',
  parse: splitList,
} satisfies ValueFlag

export const keyCommands = [
  command({
    noun: 'key',
    verb: 'create',
    help: 'create an API key for a member, and print its secret once',
    flags: {
      workspace,
      owner: { ...user, help: 'ID of the member who owns the key' },
      scopes,
      ips,
      name: { value: 'NAME', help: 'display name of the key', parse: parseName },
      expires: {
        value: 'WHEN',
        help: 'when the key expires: a date, a time with a zone, or a duration such as 90d (default: never)',
        parse: parseExpiry,
      },
      reason,
    },
    examples: [
      '--workspace wsp_… --owner ada@example.com --scopes wallet:read,transfer:read',
      '--workspace wsp_… --owner ada@example.com --scopes transfer:create --ips 203.0.113.0/24 --expires 90d',
    ],
    run: (core, { workspace: workspaceId, owner, name, ips: ipAllowlist, expires, scopes, reason }) =>
      core.apiKeys.create.mutate({
        workspaceId,
        ownerUserId: owner,
        scopes,
        ipAllowlist,
        name,
        expiresAt: expires,
        reason,
      }),
    print: printIssuedKey,
  }),
  command({
    noun: 'key',
    verb: 'list',
    help: 'list API keys, without their secrets',
    flags: {
      workspace: { ...workspace, help: 'list only the keys of this workspace', required: false },
      key: { ...key, help: 'list only this key', required: false },
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
    print: ({ keys }) => (keys.length > 0 ? printKeys(keys) : 'No keys found.'),
  }),
  keyCommand('disable', 'disable a key at once, until it is enabled again', 'Disabled', (core, input) =>
    core.apiKeys.disable.mutate(input),
  ),
  keyCommand('enable', 'enable a disabled key', 'Enabled', (core, input) => core.apiKeys.enable.mutate(input)),
  keyCommand('delete', 'delete a key permanently', 'Deleted', (core, input) => core.apiKeys.delete.mutate(input)),
  command({
    noun: 'key',
    verb: 'rotate',
    help: 'replace the secret of a key, and print the new one once',
    flags: {
      key,
      grace: {
        value: 'DURATION',
        help: 'how long the old secret keeps working (default: it stops at once)',
        parse: parseGrace,
      },
      force: { help: 'rotate even if the old secret of an earlier rotation still works' },
      reason,
    },
    examples: ['--key ak_…', '--key ak_… --grace 24h'],
    run: (core, { key: apiKey, grace: graceMs, force, reason }) =>
      core.apiKeys.rotate.mutate({ apiKey, graceMs, force, reason }),
    print: printIssuedKey,
  }),
  command({
    noun: 'key',
    verb: 'set-expiry',
    help: 'change when a key expires',
    flags: {
      key,
      expires: {
        value: 'WHEN',
        help: 'a date, a time with a zone, a duration such as 90d, now, or never',
        choices: ['now', 'never'],
        required: true,
        parse: parseNewExpiry,
      },
      reason,
    },
    examples: ['--key ak_… --expires 90d', '--key ak_… --expires now', '--key ak_… --expires never'],
    async run(core, { key: apiKey, expires, reason }) {
      const { expiresAt } = await core.apiKeys.setExpiry.mutate({ apiKey, expiresAt: expires, reason })
      return { apiKey, expiresAt }
    },
    print: ({ apiKey, expiresAt }) => `Key ${apiKey} ${expirySentence(expiresAt)}.`,
  }),
  command({
    noun: 'key',
    verb: 'set-scopes',
    help: 'replace the scopes of a key',
    flags: { key, scopes, reason },
    examples: ['--key ak_… --scopes wallet:read,transfer:create'],
    async run(core, { key: apiKey, scopes: granted, reason }) {
      await core.apiKeys.setScopes.mutate({ apiKey, scopes: granted, reason })
      return { apiKey, scopes: granted }
    },
    print: ({ apiKey, scopes: granted }) => `Key ${apiKey} now has the scopes ${granted.join(', ')}.`,
  }),
  command({
    noun: 'key',
    verb: 'set-ips',
    help: 'replace the IP addresses that a key may be used from',
    flags: { key, ips: { ...ips, required: true }, reason },
    examples: ['--key ak_… --ips 203.0.113.7,2001:db8::/32', "--key ak_… --ips ''"],
    async run(core, { key: apiKey, ips: ipAllowlist, reason }) {
      await core.apiKeys.setIps.mutate({ apiKey, ipAllowlist, reason })
      return { apiKey, ipAllowlist }
    },
    print: ({ apiKey, ipAllowlist }) =>
      `Key ${apiKey} can now be used from ${ipAllowlist.length > 0 ? ipAllowlist.join(', ') : 'any address'}.`,
  }),
]

function keyCommand(
  verb: string,
  help: string,
  done: string,
  action: (core: CoreClient, input: { apiKey: string; reason: string | undefined }) => Promise<void>,
): Command {
  return command({
    noun: 'key',
    verb,
    help,
    flags: { key, reason },
    examples: ['--key ak_…', "--key ak_… --reason 'leaked'"],
    async run(core, { key: apiKey, reason }) {
      await action(core, { apiKey, reason })
      return { apiKey }
    },
    print: ({ apiKey }) => `${done} key ${apiKey}.`,
  })
}

function printIssuedKey({ apiKey, apiSecret }: { apiKey: string; apiSecret: string }): string {
  return `API key     ${apiKey}\nAPI secret  ${apiSecret}\n\nStore the secret now. It is not shown again.`
}

function expirySentence(expiresAt: Date | null): string {
  if (!expiresAt) return 'never expires'
  return expiresAt > new Date() ? `expires at ${expiresAt.toISOString()}` : 'has expired and no longer works'
}

function printKeys(keys: KeyRecord[]): string {
  const rows = keys.map(each => [
    each.apiKey,
    each.isModified ? 'MODIFIED' : each.status,
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
