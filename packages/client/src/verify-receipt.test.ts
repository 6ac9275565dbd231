/** verifyReceipt and the vectors that openssl signs. test/shop.test.ts verifies receipts of a running service. */
import { expect, test } from 'vitest'
import file from '../../../test/vectors/receipts.json' with { type: 'json' }
import { ReceiptError, verifyReceipt } from './index.ts'

const { vectors, forgeries } = file
const jwks = { keys: vectors.map(({ kid, x }) => ({ kid, x })) }

test.each(vectors)('$name: returns what the receipt says', async ({ receipt, payload }) => {
  expect(await verifyReceipt(receipt, jwks)).toEqual(JSON.parse(payload))
})

test('ignores white space around a receipt, as a file has it', async () => {
  const { receipt, payload } = vectors[0]!
  expect(await verifyReceipt(` ${receipt}\r\n`, jwks)).toEqual(JSON.parse(payload))
})

test.each(forgeries)('refuses: $name', async ({ receipt }) => {
  await expect(verifyReceipt(receipt, jwks)).rejects.toBeInstanceOf(ReceiptError)
})

test('refuses a receipt with any other character', async () => {
  const { receipt } = vectors[0]!
  for (const at of receipt.split('').keys()) {
    const changed = receipt.slice(0, at) + (receipt[at] === 'A' ? 'B' : 'A') + receipt.slice(at + 1)
    await expect(verifyReceipt(changed, jwks), `character ${at}`).rejects.toBeInstanceOf(ReceiptError)
  }
})

test('says when its keys are older than the receipt', async () => {
  const { receipt, kid } = vectors[0]!
  await expect(verifyReceipt(receipt, { keys: [] })).rejects.toThrow(`The key ${kid} is unknown.`)
})
