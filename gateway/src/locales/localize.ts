import { batchIndexOf, type DomainError, type ErrorDetails } from '@workspace-wallet/contract'
import { enUS } from './en-US.ts'
import type { Locale } from './locale.ts'
import { zhCN } from './zh-CN.ts'

/** The languages of `detail`. The first one is the default. */
export const locales: readonly [Locale, ...Locale[]] = [enUS, zhCN]

/** The best match for a language tag: the same tag, or else the same primary language, or else the default. */
export function findLocale(tag: string): Locale {
  return matchLocale(tag) ?? locales[0]
}

/** Like `findLocale`, without the default. */
export function matchLocale(tag: string): Locale | undefined {
  // Java writes zh_CN.
  const wanted = tag.toLowerCase().replaceAll('_', '-')
  const [language] = wanted.split('-', 1)
  return (
    locales.find(locale => locale.tag.toLowerCase() === wanted) ??
    locales.find(locale => locale.tag.split('-', 1)[0] === language)
  )
}

/** The sentence for an error in one language. */
export function localize(error: DomainError, locale: Locale): string {
  const { code, details } = error
  const sentenceOf = locale.sentences[code] as (details: ErrorDetails[typeof code], locale: Locale) => string
  const sentence = sentenceOf(details, locale)
  const index = batchIndexOf(error)
  // The fields of S012 name the item themselves.
  return index === undefined || code === 'S012' ? sentence : locale.atIndex(index, sentence)
}
