import { expect, test } from 'vitest'
import { sentenceOf } from './sentences.ts'

const core = { urls: ['http://core'], token: 'x', source: 'CORE_TOKEN' }

test('a code of a newer core is named, and no reason to crash', () => {
  const appError = { kind: 'domain', code: 'X999', details: {} }
  const error = Object.assign(new Error('X999 LIMIT_REACHED'), { data: { code: 'CONFLICT', appError } })
  expect(sentenceOf(error, core)).toBe(
    "Core refused this with a code that is unknown here (X999 LIMIT_REACHED): use the admin command of core's version.",
  )
})
