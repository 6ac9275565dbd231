import { expect, test } from 'vitest'
import { sentenceOf } from './sentences.ts'

const core = { urls: ['http://core'], token: 'x', source: 'CORE_TOKEN' }

test('an unknown error code of a newer core is reported', () => {
  const appError = { kind: 'domain', code: 'X999', details: {} }
  const error = Object.assign(new Error('X999 LIMIT_REACHED'), { data: { code: 'CONFLICT', appError } })
  expect(sentenceOf(error, core)).toBe(
    "Core answered with an unknown error code (X999 LIMIT_REACHED): use the admin command of core's version.",
  )
})
