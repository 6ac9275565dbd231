import { expect, test } from 'vitest'
import type { z } from 'zod'
import { holdBizId, transferBizId } from './biz-ids.ts'
import { displayName, label, plainText, reference } from './text.ts'

const schemas = { plainText: plainText(4), label, displayName, reference, transferBizId, holdBizId }
const faultOf = (schema: z.ZodType, value: unknown) => schema.safeParse(value).error?.issues[0]?.message ?? null

test.each<[keyof typeof schemas, unknown, string | null]>([
  ['plainText', '', null],
  ['plainText', 'abcd', null],
  ['plainText', 'abcde', 'TOO_LONG'],
  // The limit counts code points, of which an emoji has one and two code units.
  ['plainText', '😀😀😀😀', null],
  ['plainText', '😀😀😀😀😀', 'TOO_LONG'],
  ['plainText', '😀😀ab', null],
  ['plainText', 'a\nb', null],
  ['plainText', 'a\u0000b', 'BAD_CHARACTER'],
  ['plainText', '\ud83d', 'BAD_CHARACTER'],
  ['plainText', '\ude00\ud83d', 'BAD_CHARACTER'],
  ['plainText', 1, 'NOT_A_STRING'],
  ['plainText', null, 'NOT_A_STRING'],
  ['label', '', null],
  ['label', 'a'.repeat(128), null],
  ['label', 'a'.repeat(129), 'TOO_LONG'],
  ['label', 'a\nb', 'NOT_ONE_LINE'],
  ['label', 'a\u007f', 'NOT_ONE_LINE'],
  ['label', 'a\u0085b', 'NOT_ONE_LINE'],
  ['displayName', 'Müller & Söhne', null],
  ['displayName', '', 'EMPTY'],
  ['displayName', ' \u00a0 ', 'EMPTY'],
  ['reference', 'INV-1/2026', null],
  ['reference', '~'.repeat(64), null],
  ['reference', '~'.repeat(65), 'TOO_LONG'],
  ['reference', '', 'EMPTY'],
  ['reference', 'a b', 'NOT_VISIBLE_ASCII'],
  ['reference', 'a\n', 'NOT_VISIBLE_ASCII'],
  ['reference', 'é', 'NOT_VISIBLE_ASCII'],
  ['transferBizId', 'rent-2026.11:a_b', null],
  ['transferBizId', '1'.repeat(64), null],
  ['transferBizId', '1'.repeat(65), 'TOO_LONG'],
  ['transferBizId', '', 'EMPTY'],
  ['transferBizId', '-a', 'NOT_A_BIZ_ID'],
  ['transferBizId', 'a/b', 'NOT_A_BIZ_ID'],
  ['transferBizId', 'a\n', 'NOT_A_BIZ_ID'],
  ['transferBizId', 'wallet', 'RESERVED'],
  ['transferBizId', 'Wallet', null],
  ['transferBizId', 'wallets', null],
  ['transferBizId', 'trf_01', 'RESERVED'],
  ['transferBizId', 'TRF_', 'RESERVED'],
  ['transferBizId', 'trf_a-b', null],
  ['transferBizId', 'hld_01', null],
  ['holdBizId', 'hld_01', 'RESERVED'],
  ['holdBizId', 'trf_01', null],
  ['holdBizId', 'wallet', null],
])('%s: the text %j has the fault %s', (schema, text, fault) => {
  expect(faultOf(schemas[schema], text)).toBe(fault)
})
