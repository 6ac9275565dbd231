import { command } from '../command.ts'
import { numberedFlags, olderSentence, readPages } from '../pages.ts'
import { table } from '../table.ts'

/** What the audit says of verifications and checkpoints. */
export const ledgerRecordCommands = [
  command({
    noun: 'ledger',
    verb: 'verifications',
    help: 'list the verifications that have ended, newest first',
    flags: numberedFlags,
    examples: [''],
    async run(core, { limit, before }) {
      const { entries, next } = await readPages({ limit, after: before }, async ({ limit, after }) => {
        const { verifications, next } = await core.ledger.verifications.query({ limit, before: after })
        return { entries: verifications, next }
      })
      return { verifications: entries, next }
    },
    print({ verifications, next }) {
      if (verifications.length === 0) return 'No verifications found.'
      const rows = verifications.map(each => [
        String(each.id),
        each.at.toISOString(),
        each.isGenuine ? (each.ok ? 'sound' : 'VIOLATIONS') : 'FORGED',
        each.kind === 'WHOLE' ? 'whole' : 'incremental',
        each.workspaceId ?? 'all',
        String(each.flows),
        each.checkpointId ?? '',
        each.actor,
        each.brokenRules.map(({ rule, violations }) => `${rule} ${violations}`).join(', '),
      ])
      const headings = ['NUMBER', 'TIME', 'RESULT', 'KIND', 'WORKSPACE', 'FLOWS', 'AGAINST', 'ACTOR', 'BROKEN RULES']
      return table(headings, rows) + olderSentence(next)
    },
  }),
  command({
    noun: 'ledger',
    verb: 'checkpoints',
    help: 'list the checkpoints that were exported, newest first; core keeps no files',
    flags: numberedFlags,
    examples: [''],
    async run(core, { limit, before }) {
      const { entries, next } = await readPages({ limit, after: before }, async ({ limit, after }) => {
        const { checkpoints, next } = await core.ledger.checkpoints.query({ limit, before: after })
        return { entries: checkpoints, next }
      })
      return { checkpoints: entries, next }
    },
    print({ checkpoints, next }) {
      if (checkpoints.length === 0) return 'No checkpoints found.'
      const rows = checkpoints.map(each => [
        String(each.id),
        each.at.toISOString(),
        each.isGenuine ? each.checkpointId : 'FORGED',
        each.workspaceId ?? 'all',
        String(each.wallets),
        each.actor,
      ])
      return table(['NUMBER', 'TIME', 'CHECKPOINT', 'WORKSPACE', 'WALLETS', 'ACTOR'], rows) + olderSentence(next)
    },
  }),
]
