/** The verifiers of receipts in examples/receipts. */
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { ReceiptClaims, ReceiptKeys } from '@workspace-wallet/contract'
import { makeTempDir } from './temp.ts'

const example = (name: string) => new URL(`../../examples/receipts/${name}`, import.meta.url)
export const javaScriptVerifier = example('verify-receipt.js')

type Verifier = { verifyReceipt: (receipt: string, jwks: ReceiptKeys) => Promise<ReceiptClaims> }

/** Runs in Node as in a browser. */
export function verifierInJavaScript(): Promise<Verifier> {
  return import(javaScriptVerifier.href)
}

/** Writes the public keys to a file, as a verifier stores them. */
export async function writeKeys(jwks: ReceiptKeys): Promise<string> {
  const file = join(await makeTempDir('receipt-keys'), 'jwks.json')
  await writeFile(file, JSON.stringify(jwks))
  return file
}

/** @throws Error with the sentence of the program, if the receipt is not genuine */
export async function verifyInPython(receipt: string, keysFile: string): Promise<ReceiptClaims> {
  const python = spawn('python3', [fileURLToPath(example('verify_receipt.py')), keysFile])
  python.stdin.end(receipt)
  const [stdout, stderr] = await Promise.all([text(python.stdout), text(python.stderr)])
  if (stderr) throw new Error(stderr.trimEnd())
  return JSON.parse(stdout)
}
