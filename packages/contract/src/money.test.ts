import fc from 'fast-check'
import { expect, test } from 'vitest'
import { currencyDecimals, decimalsOf } from './currencies.ts'
import { amountFault, amountText, currencyCode, Decimal, formatBalance, maxDigits, parseDecimal } from './money.ts'

const faultOf = (schema: typeof amountText | typeof currencyCode, value: unknown) =>
  schema.safeParse(value).error?.issues[0]?.message ?? null

test.each([
  ['1', null],
  ['100.50', null],
  ['0.01', null],
  ['0.000000000000000001', null],
  ['9'.repeat(maxDigits), null],
  [`0.${'9'.repeat(maxDigits - 1)}`, null],
  ['9'.repeat(maxDigits + 1), 'TOO_MANY_DIGITS'],
  [`0.${'9'.repeat(maxDigits)}`, 'TOO_MANY_DIGITS'],
  ['0', 'NOT_POSITIVE'],
  ['0.00', 'NOT_POSITIVE'],
  ['-1', 'NOT_AN_AMOUNT'],
  ['+1', 'NOT_AN_AMOUNT'],
  ['01', 'NOT_AN_AMOUNT'],
  ['.5', 'NOT_AN_AMOUNT'],
  ['1.', 'NOT_AN_AMOUNT'],
  ['1e3', 'NOT_AN_AMOUNT'],
  ['0x10', 'NOT_AN_AMOUNT'],
  ['1,5', 'NOT_AN_AMOUNT'],
  ['1_000', 'NOT_AN_AMOUNT'],
  [' 1', 'NOT_AN_AMOUNT'],
  ['1\n', 'NOT_AN_AMOUNT'],
  ['١', 'NOT_AN_AMOUNT'],
  ['NaN', 'NOT_AN_AMOUNT'],
  ['Infinity', 'NOT_AN_AMOUNT'],
  ['', 'NOT_AN_AMOUNT'],
  [1, 'NOT_A_STRING'],
  [null, 'NOT_A_STRING'],
])('the amount %o has the fault %s, and the pattern of the OpenAPI document agrees', (amount, fault) => {
  expect(faultOf(amountText, amount)).toBe(fault)
  const { pattern, maxLength } = amountText.meta() as { pattern: string; maxLength: number }
  const fits = typeof amount === 'string' && amount.length <= maxLength && new RegExp(pattern).test(amount)
  expect(fits).toBe(fault === null)
})

test.each([
  ['100', 'JPY', null],
  ['100.5', 'JPY', 0],
  ['100.50', 'USD', null],
  ['100.505', 'USD', 2],
  // Zeros count too: an amount is echoed as it was sent.
  ['100.500', 'USD', 2],
  ['1.234', 'KWD', null],
  ['0.00000001', 'BTC', null],
  ['0.000000001', 'BTC', 8],
  ['0.000000000000000001', 'ETH', null],
])('the amount %s in %s: the decimals that it exceeds are %s', (amount, currency, limit) => {
  expect(amountFault(amount, currency)).toEqual(limit === null ? null : { reason: 'TOO_MANY_DECIMALS', limit })
})

test.each([
  ['USD', null],
  ['usd', 'UNKNOWN_CURRENCY'],
  ['XXX', 'UNKNOWN_CURRENCY'],
  ['', 'UNKNOWN_CURRENCY'],
  [840, 'NOT_A_STRING'],
])('the currency %o has the fault %s', (currency, fault) => {
  expect(faultOf(currencyCode, currency)).toBe(fault)
})

test('the codes of the table are in upper case, and the decimals of others are an error', () => {
  expect([...currencyDecimals.keys()].filter(code => !/^[A-Z]{3,5}$/.test(code))).toEqual([])
  expect(() => decimalsOf('XXX')).toThrow('currency XXX is not in the table')
})

test.each([
  ['899.5', 'USD', '899.50'],
  ['0', 'USD', '0.00'],
  ['-12', 'USD', '-12.00'],
  ['1000', 'JPY', '1000'],
  ['0.1', 'ETH', '0.100000000000000000'],
  [`${'9'.repeat(47)}.99`, 'USD', `${'9'.repeat(47)}.99`],
])('the balance %s in %s is written as %s', (balance, currency, text) => {
  expect(formatBalance(parseDecimal(balance), currency)).toBe(text)
})

test.each([
  '0x10',
  '1e3',
  'NaN',
  'Infinity',
  '',
  ' 1',
  '+1',
  '1.',
  '.1',
  '1'.repeat(101),
  `0.${'1'.repeat(101)}`,
  1,
  null,
])('%o is not parsed as a decimal', text => {
  expect(() => parseDecimal(text)).toThrow('not a decimal')
})

test('sums of amounts are exact, whatever their number of digits', () => {
  const amount = fc.tuple(fc.bigInt(0n, 10n ** 38n), fc.integer({ min: 0, max: 18 }))
  fc.assert(
    fc.property(fc.array(amount, { maxLength: 20 }), amounts => {
      const scale = 10n ** 18n
      const exact = amounts.reduce((sum, [digits, decimals]) => sum + digits * 10n ** BigInt(18 - decimals), 0n)
      const sum = amounts.reduce(
        (total, [digits, decimals]) => total.plus(new Decimal(`${digits}e-${decimals}`)),
        new Decimal(0),
      )
      expect(sum.times(`${scale}`).toFixed()).toBe(`${exact}`)
      expect(parseDecimal(sum.toFixed()).eq(sum)).toBe(true)
    }),
  )
})
