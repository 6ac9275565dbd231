import type { KekStatus } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { listOf } from '../../command-line/sentence.ts'
import { command } from '../command.ts'
import type { Progress } from '../progress.ts'
import { isOutcomeUnknown } from '../sentences.ts'
import { table } from '../table.ts'

type Rotation = {
  active: string
  /** Secrets that were re-encrypted, or went because nobody could use them any more. */
  rewrapped: number
  /** Secrets that are still under another key-encryption key. */
  remaining: number
  /** Keys whose secrets open under no key-encryption key that core has. */
  unreadable: string[]
  /** Key-encryption keys that no secret needs any more may go. */
  keks: KekStatus['keks']
}

/** The key-encryption keys (KEY_ENCRYPTION_KEYS) over API secrets. */
export const kekCommands = [
  command({
    noun: 'kek',
    verb: 'status',
    help: 'show how many API secrets each key-encryption key encrypts',
    flags: {},
    examples: [''],
    run: core => core.keks.status.query(),
    print: ({ active, keks }) =>
      `New secrets are encrypted under ${active}.${keks.length > 0 ? `\n\n${printKeks(keks)}` : ''}`,
  }),
  command({
    noun: 'kek',
    verb: 'rotate',
    help: 're-encrypt all API secrets under the first key-encryption key; API keys keep working; safe to repeat',
    flags: {},
    examples: ['', '--json'],
    run: (core, _, progress) => rotate(core, progress),
    print: ({ active, rewrapped, remaining, keks }) =>
      `${rewrapped} secret(s) were re-encrypted.\n\n${printKeks(keks)}${remaining > 0 ? '' : `\n\nEvery secret is under ${active}: no other key-encryption key is needed for this database any more.`}`,
    complaint: ({ active, remaining, unreadable }) => {
      if (remaining === 0) return undefined
      const still = `${remaining} secret(s) are still not under ${active}`
      return unreadable.length > 0
        ? `${still}, because those of ${listOf(unreadable.slice(0, 10))} do not open: rotate or delete these keys.`
        : `${still}: see that every core has ${active} first, and run this again.`
    },
  }),
]

/** In steps, each whole in itself: what was done stays done, whoever ends this and when. */
async function rotate(core: CoreClient, progress: Progress): Promise<Rotation> {
  try {
    const { active, keks } = await core.keks.status.query()
    const total = remainingOf(active, keks)
    let rewrapped = 0
    // Again, while keys that were changed or issued meanwhile leave something to do.
    for (;;) {
      const pass = { rewrapped: 0, unreadable: [] as string[] }
      for (let after: string | undefined; ; ) {
        const step = await core.keks.rewrap.mutate({ to: active, after })
        pass.rewrapped += step.rewrapped
        pass.unreadable.push(...step.unreadable)
        progress.show(Math.min(rewrapped + pass.rewrapped, total), total, 'secrets')
        if (step.next === null) break
        after = step.next
      }
      rewrapped += pass.rewrapped
      const now = await core.keks.status.query()
      const remaining = remainingOf(active, now.keks)
      if (remaining === 0 || pass.rewrapped === 0)
        return { active, rewrapped, remaining, unreadable: pass.unreadable, keks: now.keks }
    }
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error
    throw new Error('Core did not answer to the end: run it again, and it goes on where it stopped.', { cause: error })
  }
}

function remainingOf(active: string, keks: KekStatus['keks']): number {
  return keks.reduce((sum, { kek, secrets }) => (kek === active ? sum : sum + secrets), 0)
}

function printKeks(keks: KekStatus['keks']): string {
  const rows = keks.map(({ kek, secrets, onRing }) => [kek, String(secrets), onRing ? 'yes' : 'NO'])
  return table(['KEY-ENCRYPTION KEY', 'SECRETS', 'CORE HAS IT'], rows)
}
