import { type AuditAct, type AuditEntry, type AuditPage, auditActs } from '@workspace-wallet/core/contract'
import { command } from '../command.ts'
import { listOf } from '../flags.ts'
import { nearest } from '../nearest.ts'
import { table } from '../table.ts'
import { parseCount, parseId, parsePast } from '../values.ts'

const asItIs = (text: string) => text

/** Looking into the audit. Nothing changes it. */
export const auditCommands = [
  command({
    noun: 'audit',
    verb: 'list',
    help: 'who did what to what, when, and what it changed; newest first',
    flags: {
      workspace: { value: 'wsp_…', help: 'only acts on this workspace', parse: parseId('workspace') },
      actor: { value: 'ROLE:NAME', help: 'only acts of this one, such as admin:operator', parse: asItIs },
      act: { value: 'ACT', help: 'only acts of this kind, such as key.disable', parse: parseAct },
      target: { value: 'ID', help: 'only acts on this key, wallet, member or workspace', parse: asItIs },
      from: { value: 'WHEN', help: 'since a date, a time with its zone, or so long ago (24h)', parse: parsePast },
      to: { value: 'WHEN', help: 'before a date, a time with its zone, or so long ago', parse: parsePast },
      limit: { value: 'COUNT', help: 'so many at most; without, 50', parse: parseCount },
      before: { value: 'NUMBER', help: 'those before this one, to go on where a list ended', parse: parsePlace },
    },
    examples: ['', '--target ak_…', '--workspace wsp_… --from 7d --json'],
    async run(core, { workspace: workspaceId, actor, act, target, from, to, before, limit = 50 }) {
      const entries: AuditEntry[] = []
      let next = before ?? null
      do {
        const filter = { workspaceId, actor, act, target, from, to, before: next ?? undefined }
        const page: AuditPage = await core.audit.list.query({ ...filter, limit: Math.min(limit - entries.length, 500) })
        entries.push(...page.entries)
        next = page.next
      } while (next !== null && entries.length < limit)
      return { entries, next }
    },
    print: ({ entries, next }) => (entries.length > 0 ? printEntries(entries, next) : 'There are no such acts.'),
  }),
]

function printEntries(entries: AuditEntry[], next: number | null): string {
  const rows = entries.map(({ id, at, actor, act, target, workspaceId, ...change }) => [
    String(id),
    at.toISOString(),
    actor,
    act,
    target,
    workspaceId === target ? '' : (workspaceId ?? ''),
    changeText(change),
  ])
  const rest = next === null ? '' : `\n\nThere are older ones: give --before ${next}.`
  return `${table(['NUMBER', 'TIME', 'ACTOR', 'ACT', 'TARGET', 'WORKSPACE', 'CHANGE'], rows)}${rest}`
}

/** What is not as it was: `status "ACTIVE" → "DISABLED"`. */
function changeText({ before, after }: Pick<AuditEntry, 'before' | 'after'>): string {
  const [old, now] = [before, after].map(view => (view ?? {}) as Record<string, unknown>)
  return Object.entries(now!)
    .map(([name, value]) => ({ name, was: JSON.stringify(old![name]), is: JSON.stringify(value) }))
    .filter(({ was, is }) => was !== is)
    .map(({ name, was, is }) => (was === undefined ? `${name} ${is}` : `${name} ${was} → ${is}`))
    .join(', ')
}

/** The name of an act, as the audit writes it: of one that is mistyped it would list none, and look as if there were none. */
function parseAct(text: string): AuditAct {
  const act = auditActs.find(each => each === text)
  if (act) return act
  const match = nearest(text, auditActs)
  throw new Error(
    `names "${text}", which is no act: ${match ? `did you mean ${match}? There` : 'there'} are ${listOf(auditActs)}`,
  )
}

function parsePlace(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new Error(`must be the NUMBER of an act, not "${text}"`)
  return Number(text)
}
