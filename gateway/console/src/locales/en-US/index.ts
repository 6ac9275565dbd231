import { findLocale } from '@workspace-wallet/gateway/locales'
import { common } from './common.ts'
import { keys, operators } from './keys.ts'
import { ledger } from './ledger.ts'
import { overview, refusals } from './overview.ts'
import { events, holds, transfers, webhooks } from './transfers.ts'
import { limits, wallets } from './wallets.ts'

export const enUS = {
  ...common,
  overview,
  refusals,
  wallets,
  limits,
  transfers,
  holds,
  events,
  webhooks,
  keys,
  operators,
  ledger,
  /** The sentences for the codes of the public API. */
  gateway: findLocale('en-US'),
}
