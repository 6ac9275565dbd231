import { SuperJSON } from 'superjson'
import { Decimal, parseDecimal } from './money.ts'

/** What travels between core and its callers: JSON plus Date and Decimal, intact. */
export const serialization = new SuperJSON()

serialization.registerCustom<Decimal, string>(
  {
    isApplicable: (value): value is Decimal => Decimal.isDecimal(value),
    serialize: value => value.toFixed(),
    deserialize: parseDecimal,
  },
  'Decimal',
)
