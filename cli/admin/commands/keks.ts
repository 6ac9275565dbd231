import { type CoreClient, type KekStatus, readKekStatus } from '@workspace-wallet/core-client'
import { countOf, listOf } from '../../command-line/sentence.ts'
import { command } from '../command.ts'
import type { Progress } from '../progress.ts'
import { isOutcomeUnknown } from '../sentences.ts'
import { table } from '../table.ts'

type Rotation = {
  active: string
  /** Secrets that were re-encrypted, or removed because they were no longer usable. */
  rewrapped: number
  /** Secrets that are still encrypted under another key-encryption key. */
  remaining: number
  /** IDs of API keys and webhooks whose secrets core cannot decrypt with any key-encryption key. */
  unreadable: string[]
  keks: KekStatus['keks']
  /** API keys and webhooks whose rows were modified outside the service. Their secrets do not count. */
  modified: KekStatus['modified']
}

/** The key-encryption keys (KEY_ENCRYPTION_KEYS), which encrypt the secrets of API keys and webhooks. */
export const kekCommands = [
  command({
    noun: 'kek',
    verb: 'status',
    help: 'show how many secrets of API keys and webhooks each key-encryption key encrypts',
    flags: {},
    examples: [''],
    run: (core, _, progress) => statusOf(core, progress),
    print: ({ active, keks, modified }) =>
      [
        `New secrets are encrypted under ${active}.`,
        ...(keks.length > 0 ? [printKeks(keks)] : []),
        ...printModified(modified),
      ].join('\n\n'),
  }),
  command({
    noun: 'kek',
    verb: 'rotate',
    help: 're-encrypt all secrets under the first key-encryption key; API keys and webhooks keep working; safe to repeat',
    flags: {},
    examples: ['', '--json'],
    run: (core, _, progress) => rotate(core, progress),
    print: ({ active, rewrapped, remaining, keks, modified }) =>
      [
        `Re-encrypted ${countOf(rewrapped, 'secret')}.`,
        printKeks(keks),
        ...printModified(modified),
        ...(remaining > 0
          ? []
          : [
              `All secrets are encrypted under ${active}. Keep other key-encryption keys only for backups from before the rotation.`,
            ]),
      ].join('\n\n'),
    failure: ({ active, remaining, unreadable }) => {
      if (remaining === 0) return undefined
      const count = countOf(remaining, 'secret')
      return unreadable.length > 0
        ? `Cannot re-encrypt ${count}, because core cannot decrypt those of ${listOf(unreadable.slice(0, 10))}: rotate or delete them.`
        : `Did not re-encrypt ${count} under ${active}: list ${active} first in KEY_ENCRYPTION_KEYS of every core, and run this again.`
    },
  }),
]

function statusOf(core: CoreClient, progress: Progress): Promise<KekStatus> {
  return readKekStatus(core, objects => progress.show(objects, null, 'API keys and webhooks read'))
}

/** Re-encrypts in steps, each of which is one transaction, so the rotation can be interrupted and run again. */
async function rotate(core: CoreClient, progress: Progress): Promise<Rotation> {
  try {
    const { active, keks } = await statusOf(core, progress)
    const total = remainingOf(active, keks)
    let rewrapped = 0
    // Repeats the pass, because keys can be changed or issued meanwhile.
    for (;;) {
      const pass = await rewrapAll(core, active, done =>
        progress.show(Math.min(rewrapped + done, total), total, 'secrets'),
      )
      rewrapped += pass.rewrapped
      const now = await statusOf(core, progress)
      const remaining = remainingOf(active, now.keks)
      if (remaining === 0 || pass.rewrapped === 0)
        return { active, rewrapped, remaining, unreadable: pass.unreadable, keks: now.keks, modified: now.modified }
    }
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error
    throw new Error('The connection to core was lost: run it again to continue.', { cause: error })
  }
}

/** One pass over all API keys and webhooks. */
async function rewrapAll(core: CoreClient, active: string, onProgress: (rewrapped: number) => void) {
  const unreadable: string[] = []
  let rewrapped = 0
  let after: string | undefined
  do {
    const step = await core.keks.rewrap.mutate({ to: active, after })
    rewrapped += step.rewrapped
    unreadable.push(...step.unreadable)
    onProgress(rewrapped)
    after = step.next ?? undefined
  } while (after !== undefined)
  return { rewrapped, unreadable }
}

function printModified({ count, rows }: KekStatus['modified']): string[] {
  if (count === 0) return []
  const named = listOf(rows.slice(0, 10).map(({ id, workspaceId }) => `${id} (${workspaceId})`))
  return [`${countOf(count, 'row')} modified outside the service: ${named}. Their secrets do not count. Delete them.`]
}

function remainingOf(active: string, keks: KekStatus['keks']): number {
  return keks.reduce((sum, { kek, secrets }) => (kek === active ? sum : sum + secrets), 0)
}

function printKeks(keks: KekStatus['keks']): string {
  const rows = keks.map(({ kek, secrets, onRing }) => [kek, String(secrets), onRing ? 'yes' : 'NO'])
  return table(['KEY-ENCRYPTION KEY', 'SECRETS', 'CORE HAS IT'], rows)
}
