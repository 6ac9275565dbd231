import { createReadStream } from 'node:fs'
import { maxReceiptLength, type ReceiptCheck, type ReceiptVerdict } from '@workspace-wallet/contract'
import { command } from '../command.ts'
import { parseFile } from '../values.ts'

export const receiptCommands = [
  command({
    noun: 'receipt',
    verb: 'check',
    help: 'check that a receipt is genuine and that the ledger still says the same; exits with 1 if not',
    flags: {
      file: {
        value: 'FILE',
        help: 'a file with the receipt; - reads standard input',
        required: true,
        parse: parseFile,
      },
    },
    examples: ['--file receipt.txt'],
    async run(core, { file }) {
      return { file, ...(await core.receipts.check.query({ receipt: await readReceipt(file) })) }
    },
    print: ({ verdict, claims }) => (claims ? `${sentences[verdict]}\n\n${describe(claims)}` : sentences[verdict]),
    failure: ({ verdict }) => (verdict === 'CONFIRMED' ? undefined : 'The receipt is not confirmed: do not accept it.'),
  }),
]

const sentences: Record<ReceiptVerdict, string> = {
  CONFIRMED: 'The receipt is genuine, and the ledger says the same.',
  MALFORMED: 'This is not a receipt: a receipt is one line of three parts with dots between them.',
  UNKNOWN_KEY: 'The receipt is not genuine: no key in RECEIPT_KEYS has the ID that it names.',
  WRONG_SIGNATURE: 'The receipt is not genuine: it was changed after it was signed, or signed by somebody else.',
  TRANSFER_MISSING:
    'The receipt is genuine, but the ledger has no such transfer: an earlier copy of the database was restored, or rows were removed.',
  TRANSFER_DIFFERENT: 'The receipt is genuine, but the ledger says something else: run ledger verify.',
  TRANSFER_MODIFIED:
    'The receipt is genuine, but the transfer was modified in the database, outside the service: run ledger verify.',
}

type Claims = ReceiptCheck['claims'] & {}

function describe(claims: Claims): string {
  const { amount, currency, sourceWalletId, targetWalletId, transferId, bizId, completedAt, workspaceId } = claims
  const { reversesTransferId, position } = claims
  return `It says: ${amount} ${currency} from ${sourceWalletId} to ${targetWalletId}, ${completedAt}.

Transfer   ${transferId}, with the bizId ${bizId}${reversesTransferId === null ? '' : `\nReverses   ${reversesTransferId}`}
Workspace  ${workspaceId}, position ${position}`
}

/**
 * Reads no more than a receipt can have.
 *
 * @throws Error that says which file to give
 */
async function readReceipt(file: string): Promise<string> {
  const input = file === '-' ? process.stdin : createReadStream(file)
  let text = ''
  try {
    for await (const part of input.setEncoding('utf8')) {
      text += part
      if (text.length > maxReceiptLength) throw new Error('too long')
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code ?? message
    throw new Error(`Cannot read a receipt from ${file} (${why}): give the path of a file with one receipt.`, {
      cause: error,
    })
  }
  return text.trim()
}
