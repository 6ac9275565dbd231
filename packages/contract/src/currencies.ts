/**
 * Currency codes by number of decimals: ISO 4217 (active codes that have a minor unit) and the common crypto assets.
 * The migration step writes this table to PostgreSQL, which rejects wallets in any other currency. To add a currency, add
 * it here. The decimals of a currency never change.
 */
const codesByDecimals: Record<number, string> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2:
    'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY ' +
    'COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS ' +
    'INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR ' +
    'MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP ' +
    'STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
  6: 'ADA ATOM TRX USDC USDT XRP',
  7: 'XLM',
  8: 'BCH BTC DOGE LTC',
  9: 'SOL TON',
  10: 'DOT',
  12: 'XMR',
  18: 'AVAX BNB DAI ETH LINK POL SHIB UNI',
}

/** Currency code → decimals (the ISO 4217 exponent). */
export const currencyDecimals: ReadonlyMap<string, number> = new Map(
  Object.entries(codesByDecimals).flatMap(([decimals, codes]) =>
    codes.split(' ').map((code): [string, number] => [code, Number(decimals)]),
  ),
)

/** The decimals of a currency. @throws Error if the currency is not in the table */
export function decimalsOf(currency: string): number {
  const decimals = currencyDecimals.get(currency)
  if (decimals === undefined) throw new Error(`currency ${currency} is not in the table`)
  return decimals
}
