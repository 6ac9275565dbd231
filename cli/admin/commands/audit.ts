import { type AuditEntry, type AuditPage, auditActions } from '@workspace-wallet/contract'
import { anyText } from '../../command-line/flags.ts'
import { command } from '../command.ts'
import { table } from '../table.ts'
import { oneOf, parseCount, parseId, parsePast, parsePlace } from '../values.ts'

const parseAction = oneOf('action', auditActions)

/** Reads the audit log. */
export const auditCommands = [
  command({
    noun: 'audit',
    verb: 'list',
    help: 'list administrative actions, newest first: who did what, when, and what changed',
    flags: {
      workspace: { value: 'wsp_…', help: 'only actions on this workspace', parse: parseId('workspace') },
      actor: { value: 'ACTOR', help: 'only actions by this actor, such as operator:ada', parse: anyText },
      request: { value: 'ID', help: 'only actions of the request or call with this ID', parse: anyText },
      action: {
        value: 'ACTION',
        help: 'only actions of this kind, such as key.disable',
        choices: auditActions,
        parse: parseAction,
      },
      target: { value: 'ID', help: 'only actions on this key, wallet, member or workspace', parse: anyText },
      from: {
        value: 'WHEN',
        help: 'only since this time: a date, a time with a zone, or a duration before now such as 24h',
        parse: parsePast,
      },
      to: { value: 'WHEN', help: 'only before this time, in the same formats', parse: parsePast },
      limit: { value: 'COUNT', help: 'maximum number of entries', default: '50', parse: parseCount },
      before: {
        value: 'NUMBER',
        help: 'only entries before this one, to continue where a list ended',
        parse: parsePlace,
      },
    },
    examples: ['', '--target ak_…', '--workspace wsp_… --from 7d --json'],
    async run(core, { workspace: workspaceId, actor, action, target, request: requestId, from, to, before, limit }) {
      const entries: AuditEntry[] = []
      let next = before ?? null
      do {
        const filter = { workspaceId, actor, action, target, requestId, from, to, before: next ?? undefined }
        const page: AuditPage = await core.audit.list.query({ ...filter, limit: Math.min(limit - entries.length, 500) })
        entries.push(...page.entries)
        next = page.next
      } while (next !== null && entries.length < limit)
      return { entries, next }
    },
    print: ({ entries, next }) => (entries.length > 0 ? printEntries(entries, next) : 'No actions found.'),
  }),
]

function printEntries(entries: AuditEntry[], next: string | null): string {
  const rows = entries.map(
    ({ id, at, actor, action, target, workspaceId, reason, requestId, isGenuine, ...change }) => [
      String(id),
      at.toISOString(),
      actor,
      action,
      target,
      workspaceId ?? '',
      reason ?? '',
      requestId ?? '',
      isGenuine ? changeText(change) : 'FORGED: run ledger verify',
    ],
  )
  const rest = next === null ? '' : `\n\nThere are older actions. To list them, add --before ${next}.`
  return `${table(['NUMBER', 'TIME', 'ACTOR', 'ACTION', 'TARGET', 'WORKSPACE', 'REASON', 'REQUEST', 'CHANGE'], rows)}${rest}`
}

/** The fields that changed: `status "ACTIVE" → "DISABLED"`. */
function changeText({ before, after }: Pick<AuditEntry, 'before' | 'after'>): string {
  const old = (before ?? {}) as Record<string, unknown>
  return Object.entries(after ?? {})
    .map(([name, value]) => ({ name, was: JSON.stringify(old[name]), is: JSON.stringify(value) }))
    .filter(({ was, is }) => was !== is)
    .map(({ name, was, is }) => (was === undefined ? `${name} ${is}` : `${name} ${was} → ${is}`))
    .join(', ')
}
