import { SuperJSON } from 'superjson'
import { Decimal, parseDecimal } from './money.ts'

/** The serialization of `/trpc`: JSON that preserves Date and Decimal values. */
export const serialization = new SuperJSON()

serialization.registerCustom<Decimal, string>(
  {
    isApplicable: (value): value is Decimal => Decimal.isDecimal(value),
    serialize: value => value.toFixed(),
    deserialize: parseDecimal,
  },
  'Decimal',
)
