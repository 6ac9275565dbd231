import { resolve } from 'node:path'
import type { WalletStatement } from '@workspace-wallet/contract'
import { statementRecord } from '@workspace-wallet/gateway/records'
import { countOf } from '../../command-line/sentence.ts'
import { command } from '../command.ts'
import { writeNewFile } from '../new-file.ts'
import { exportLines, type Format, formats } from '../statement-export.ts'
import { parseFile, parsePast } from '../values.ts'
import { withProgress } from '../verification.ts'
import { wallet, workspace } from './id-flags.ts'

const formatNames = Object.keys(formats)

export const statementCommands = [
  command({
    noun: 'statement',
    verb: 'export',
    help: 'write the flows of a wallet and their totals to a file',
    flags: {
      workspace,
      wallet,
      from: {
        value: 'TIME',
        help: 'flows from this date, time with a zone, or duration before now',
        required: true,
        parse: parsePast,
      },
      to: { value: 'TIME', help: 'flows before this time, at least 30s ago', required: true, parse: parsePast },
      format: {
        value: 'FORMAT',
        help: 'csv or jsonl (default: jsonl if FILE ends in .jsonl, otherwise csv)',
        choices: formatNames,
        parse: parseFormat,
      },
      out: { value: 'FILE', help: 'the file to create', required: true, parse: parseFile },
    },
    examples: [
      '--workspace wsp_… --wallet wal_… --from 2026-10-01 --to 2026-11-01 --out october.csv',
      '--workspace wsp_… --wallet wal_… --from 30d --to 1m --out latest.jsonl',
    ],
    async run(core, { workspace: workspaceId, wallet: walletId, from, to, format, out }, progress) {
      if (from > to) throw new Error(`--from (${from.toISOString()}) is after --to (${to.toISOString()}): swap them.`)
      const file = resolve(out)
      let statement: WalletStatement | undefined
      async function* lines() {
        const show = (done: number, total: number) => progress.show(done, total, 'lines')
        statement = yield* exportLines(core, { workspaceId, walletId, from, to }, format ?? formatOf(file), show)
      }
      const sha256 = await withProgress('export', progress, () => writeNewFile(file, 'exports', lines()))
      return { file, ...statementRecord(statement!), sha256 }
    },
    print: ({ file, walletId, from, to, currency, opening, closing, totalIn, totalOut, flowCount, sha256 }) =>
      `Wrote ${countOf(flowCount, 'flow')} of wallet ${walletId} from ${from} to ${to}.

Opening  ${opening} ${currency}
In       ${totalIn}
Out      ${totalOut}
Closing  ${closing}

File     ${file}
SHA-256  ${sha256}`,
  }),
]

function formatOf(file: string): Format {
  return file.endsWith('.jsonl') ? formats.jsonl : formats.csv
}

function parseFormat(text: string): Format {
  if (!Object.hasOwn(formats, text)) throw new Error(`must be ${formatNames.join(' or ')}, not "${text}"`)
  return formats[text as keyof typeof formats]
}
