import type { Instance, InstanceKind, Refusal, SystemStatus } from '@workspace-wallet/contract'
import {
  expiringWithinDays,
  formatBalance,
  instanceLabel,
  kindsOfMixedVersions,
  maxActivityHours,
  recordBackupInput,
  unusedForDays,
} from '@workspace-wallet/contract'
import { anyText } from '../../command-line/flags.ts'
import { command } from '../command.ts'
import { numberedFlags, olderSentence, readPages } from '../pages.ts'
import { table } from '../table.ts'
import { parseCount, parsePlaces, parserFor } from '../values.ts'

const parseBackupName = parserFor(recordBackupInput.shape.name, 'must have 1 to 255 characters')

/** What `npm run backup -- take` does by itself. */
const recordBackup = command({
  noun: 'system',
  verb: 'record-backup',
  help: 'record a backup that another program has taken, so that nobody is told that there is none',
  flags: {
    name: {
      value: 'NAME',
      help: 'name of its file',
      required: true,
      parse: parseBackupName,
    },
    bytes: { value: 'COUNT', help: 'size of its file', required: true, parse: parseBytes },
    places: { value: 'NUMBERS', help: 'the places that it contains, if there are several', parse: parsePlaces },
  },
  examples: ['--name wallet.tar --bytes 52428800', '--name db-2.tar --bytes 52428800 --places 1'],
  async run(core, backup) {
    await core.system.recordBackup.mutate(backup)
    return backup
  },
  print: ({ name }) => `Recorded the backup ${name}.`,
})

function parseBytes(text: string): number {
  const bytes = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(bytes)) throw new Error(`must be a number of bytes, not "${text}"`)
  return bytes
}

export const systemCommands = [
  command({
    noun: 'system',
    verb: 'status',
    help: 'show versions, running instances, halted workspaces, the last verification, checkpoint and backup, and keys that need attention',
    flags: {},
    examples: [''],
    run: core => core.system.status.query(),
    print: printStatus,
  }),
  command({
    noun: 'system',
    verb: 'activity',
    help: 'count the transfers of the last hours and their volume, by hour (UTC) and currency; without deposits and withdrawals',
    flags: {
      hours: {
        value: 'COUNT',
        help: `how many hours, with the present one (1 to ${maxActivityHours})`,
        default: String(maxActivityHours),
        parse: parseCount,
      },
    },
    examples: ['', '--hours 1'],
    async run(core, { hours }) {
      const { totals, ...times } = await core.system.activity.query({ hours })
      const shown = totals.map(each => ({ ...each, volume: formatBalance(each.volume, each.currency) }))
      return { ...times, totals: shown }
    },
    print: ({ from, totals }) =>
      totals.length === 0
        ? `No transfers since ${from.toISOString()}.`
        : table(
            ['HOUR', 'CURRENCY', 'TRANSFERS', 'VOLUME'],
            totals.map(each => [each.hour.toISOString(), each.currency, String(each.transfers), each.volume]),
          ),
  }),
  recordBackup,
]

export const refusalCommands = [
  command({
    noun: 'refusal',
    verb: 'list',
    help: 'list calls of the public API that were refused in the last seven days, newest first',
    flags: {
      key: { value: 'ak_…', help: 'only calls that named this API key', parse: anyText },
      request: { value: 'ID', help: 'only the request with this ID (X-Request-Id)', parse: anyText },
      code: { value: 'CODE', help: 'only this code, such as GA2012', parse: anyText },
      address: { value: 'ADDRESS', help: 'only calls from this address', parse: anyText },
      ...numberedFlags,
    },
    examples: ['--key ak_…', '--code GA2012 --address 203.0.113.7'],
    async run(core, { key: apiKey, request: requestId, code, address, limit, before }) {
      const { entries, next } = await readPages({ limit, after: before }, async ({ limit, after }) => {
        const filter = { apiKey, requestId, code, address, before: after }
        const { refusals, next } = await core.refusals.list.query({ ...filter, limit })
        return { entries: refusals, next }
      })
      return { refusals: entries, next }
    },
    print: ({ refusals, next }) => (refusals.length > 0 ? printRefusals(refusals, next) : 'No refused calls found.'),
  }),
]

function printRefusals(refusals: Refusal[], next: string | null): string {
  const rows = refusals.map(each => [
    String(each.id),
    each.at.toISOString(),
    each.code,
    each.step,
    `${each.method} ${each.route}`,
    each.apiKey ?? '',
    each.address,
    each.requestId,
    each.gateway,
    each.detail,
  ])
  const headings = ['NUMBER', 'TIME', 'CODE', 'STEP', 'CALL', 'KEY', 'FROM', 'REQUEST', 'GATEWAY', 'DETAIL']
  return table(headings, rows) + olderSentence(next)
}

function printStatus(status: SystemStatus): string {
  const { versions, instances, halted, lastVerification, lastWholeVerification, lastCheckpoint, lastBackup } = status
  const last = (record: { at: Date; actor: string; isGenuine: boolean } | null, what = '') =>
    record
      ? `${what}${record.at.toISOString()} by ${record.actor}${record.isGenuine ? '' : ' (FORGED: run ledger verify)'}`
      : 'none'
  return [
    `Core ${versions.core} (${versions.schema.join(', ')}), Node ${versions.node}, PostgreSQL ${versions.postgresql}`,
    `Last verification        ${last(lastVerification, lastVerification?.ok ? 'sound, ' : 'VIOLATIONS, ')}`,
    `Last whole verification  ${last(lastWholeVerification, lastWholeVerification?.ok ? 'sound, ' : 'VIOLATIONS, ')}`,
    `Last checkpoint          ${last(lastCheckpoint)}`,
    `Last backup              ${last(lastBackup, lastBackup ? `${lastBackup.name}, ` : '')}`,
    '',
    halted.length === 0
      ? 'No workspace is halted.'
      : table(
          ['HALTED', 'REASON'],
          halted.map(each => [each.workspaceId, each.reason]),
        ),
    '',
    printInstances(instances),
    ...kindsOfMixedVersions(instances).map(kind => `WARNING: ${pluralOf[kind]} run different versions.`),
    ...printCredentials(status),
  ].join('\n')
}

function printCredentials({ credentials }: SystemStatus): string[] {
  if (!credentials)
    return [
      '',
      'Core could not find in time the keys and operators that expire or are not used: somebody may have written many',
      'outside the service. Run ledger verify, which names them.',
    ]
  const { expiringKeys, expiringOperators, unusedKeys } = credentials
  return [
    ...section(
      `Expire within ${expiringWithinDays} days:`,
      [
        ...expiringOperators.map(each => [`operator ${each.name}`, '', each.expiresAt.toISOString()]),
        ...expiringKeys.map(each => [each.apiKey, each.ownerUserId, each.expiresAt.toISOString()]),
      ],
      ['KEY', 'OWNER', 'EXPIRES'],
    ),
    ...section(
      `Not used for ${unusedForDays} days:`,
      unusedKeys.map(each => [each.apiKey, each.ownerUserId, each.lastUsedAt?.toISOString() ?? 'never']),
      ['KEY', 'OWNER', 'LAST USED'],
    ),
  ]
}

const pluralOf: Record<InstanceKind, string> = { core: 'cores', gateway: 'gateways', courier: 'couriers' }

function printInstances(instances: Instance[]): string {
  if (instances.length === 0) return 'No instance has reported itself yet.'
  const rows = instances.map(each => [
    instanceLabel(each),
    each.host,
    each.version,
    each.startedAt.toISOString(),
    String(each.waiting),
    stateOf(each),
    each.instanceId,
  ])
  return table(['INSTANCE', 'HOST', 'VERSION', 'STARTED', 'WAITING', 'STATE', 'ID'], rows)
}

function stateOf({ isRunning, seenAt, fault, unhealthyCores }: Instance): string {
  if (!isRunning) return `NOT SEEN SINCE ${seenAt.toISOString()}`
  const faults = [fault, unhealthyCores > 0 ? `cores that do not respond: ${unhealthyCores}` : null]
  return ['running', ...faults.filter(each => each !== null)].join('; ')
}

function section(title: string, rows: string[][], headings: string[]): string[] {
  return rows.length === 0 ? [] : ['', title, table(headings, rows)]
}
