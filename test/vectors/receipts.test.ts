/**
 * Receipts against vectors that make-receipts.sh makes with openssl: the service writes the same bytes, and the service and
 * both examples of verifiers refuse the same forgeries.
 */
import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ReceiptKeys } from '@workspace-wallet/contract'
import { beforeAll, describe, expect, test } from 'vitest'
import { signReceipt, verifyReceipt } from '../../services/core/src/signing/jws.ts'
import { parseSigningKeys, publicKeysOf } from '../../services/core/src/signing/signing-keys.ts'
import { findPrograms } from '../../cli/processes/programs.ts'
import { verifierInJavaScript, verifyInPython, writeKeys } from '../setup/receipt-verifiers.ts'

type Vector = { name: string; seed: string; kid: string; x: string; payload: string; receipt: string }

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const file = await readFile(here('receipts.json'), 'utf8')
const { vectors, forgeries } = JSON.parse(file) as { vectors: Vector[]; forgeries: { name: string; receipt: string }[] }
const keys = parseSigningKeys(vectors.map(({ kid, seed }) => `${kid}:${seed}`).join(','))
const jwks: ReceiptKeys = publicKeysOf(keys)

const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** The text with the next character of base64url in one place: it differs in the last bit. A dot becomes an A. */
function withNextCharacter(text: string, at: number): string {
  return text.slice(0, at) + base64url[(base64url.indexOf(text[at]!) + 1) % 64] + text.slice(at + 1)
}

let keysFile: string
beforeAll(async () => {
  await findPrograms(['python3', 'openssl'].map(name => ({ names: [name], aptPackage: name })))
  keysFile = await writeKeys(jwks)
})

test.each(vectors)('$name: the service writes exactly this receipt', ({ kid, seed, payload, receipt }) => {
  expect(signReceipt(parseSigningKeys(`${kid}:${seed}`), JSON.parse(payload))).toBe(receipt)
})

test('the public keys are those of openssl, and nothing else of the keys is public', () => {
  expect(jwks.keys).toEqual(
    vectors.map(({ kid, x }) => ({ kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' })),
  )
})

describe.each(vectors)('$name', ({ receipt, payload }) => {
  const claims = JSON.parse(payload)

  test('the service, Python and JavaScript read the same claims', async () => {
    expect(verifyReceipt(keys, receipt)).toMatchObject({ fault: null, claims })
    expect(await verifyInPython(receipt, keysFile)).toEqual(claims)
    const { verifyReceipt: verifyInJavaScript } = await verifierInJavaScript()
    expect(await verifyInJavaScript(receipt, jwks)).toEqual(claims)
  })

  test('a receipt with any other character is not genuine', async () => {
    const { verifyReceipt: verifyInJavaScript } = await verifierInJavaScript()
    for (let at = 0; at < receipt.length; at++) {
      const changed = withNextCharacter(receipt, at)
      expect(verifyReceipt(keys, changed).fault, `character ${at}`).not.toBeNull()
      await expect(verifyInJavaScript(changed, jwks), `character ${at}`).rejects.toThrow()
    }
    // The last character has four bits that belong to no byte.
    await expect(verifyInPython(withNextCharacter(receipt, receipt.length - 1), keysFile)).rejects.toThrow('base64url')
  })
})

test.each(forgeries)('refused by the service and both verifiers: $name', async ({ receipt }) => {
  expect(verifyReceipt(keys, receipt).fault).toMatch(/^(MALFORMED|UNKNOWN_KEY|WRONG_SIGNATURE)$/)
  await expect(verifyInPython(receipt, keysFile)).rejects.toThrow(/^The receipt is not genuine: .*\.$/)
  const { verifyReceipt: verifyInJavaScript } = await verifierInJavaScript()
  await expect(verifyInJavaScript(receipt, jwks)).rejects.toThrow()
})

test('make-receipts.sh prints exactly these vectors', async () => {
  const { stdout, stderr } = await promisify(execFile)('sh', [here('make-receipts.sh')])
  expect(stderr).toBe('')
  expect(stdout).toBe(file)
})

test('make-receipts.sh reports a missing openssl in one sentence', async () => {
  const made = spawn('/bin/sh', [here('make-receipts.sh')], { env: { PATH: '/nonexistent' } })
  expect(await text(made.stderr)).toMatch(/^[^\n]*openssl is missing: install [^\n]*\.\n$/)
})

test.each(['', 'r1', 'r1:', 'r1:AAAA', `r 1:${vectors[0]!.seed}`, `r1:${vectors[0]!.seed}:x`])(
  'RECEIPT_KEYS may not be "%s"',
  value => {
    expect(() => parseSigningKeys(value)).toThrow('needs entries of the form id:base64')
  },
)

test('RECEIPT_KEYS names each key once', () => {
  const { seed } = vectors[0]!
  expect(() => parseSigningKeys(`r1:${seed},r1:${seed}`)).toThrow('names the key id r1 twice')
})
