import { findLocale } from '@workspace-wallet/gateway/locales'
import { common } from './common.ts'
import { ledger } from './ledger.ts'

export const enUS = {
  ...common,
  ledger,
  /** The sentences for the codes of the public API. */
  gateway: findLocale('en-US'),
}
