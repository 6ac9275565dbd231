import { currencyDecimals, type Decimal, decimalsOf, parseDecimal } from '@workspace-wallet/contract'

/** The decimals of a currency; 0 for one that this version does not know. */
function decimalsIn(currency: string): number {
  return currencyDecimals.has(currency) ? decimalsOf(currency) : 0
}

/** How many decimals the amounts of a column have at most, so that their points can be aligned. */
export function widestFraction(currencies: readonly string[]): number {
  return Math.max(0, ...currencies.map(decimalsIn))
}

/** Text of an amount with the decimals of its currency. It never passes through a binary floating-point number. */
export function amountText(value: Decimal | string, currency: string): string {
  if (!currencyDecimals.has(currency)) return String(value)
  const exact = typeof value === 'string' ? parseDecimal(value) : value
  return exact.toFixed(decimalsOf(currency))
}

type AmountProps = {
  value: Decimal | string
  currency: string
  /** The most decimals in the column: reserves their width, so that the points of all amounts are aligned. */
  fraction?: number
  sign?: '+' | '−'
}

/** An amount with its currency, grouped in thousands. */
export function Amount({ value, currency, fraction = 0, sign }: AmountProps) {
  const text = amountText(value, currency)
  const [whole = '', decimals = ''] = text.replace('-', '−').split('.')
  // What a longer fraction has more, invisible.
  const missing = '0'.repeat(Math.max(0, fraction - decimals.length))
  return (
    <span className="amount" dir="ltr">
      {sign}
      {whole.replace(/\B(?=(\d{3})+$)/g, ',')}
      {decimals && `.${decimals}`}
      {missing && (
        <span className="fraction" aria-hidden="true">
          {decimals ? missing : `.${missing}`}
        </span>
      )}
      <span className="currency">{currency}</span>
    </span>
  )
}
