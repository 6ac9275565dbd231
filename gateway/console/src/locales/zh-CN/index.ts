import { findLocale } from '@workspace-wallet/gateway/locales'
import type { Catalogue } from '../catalogue.ts'
import { common } from './common.ts'
import { keys, operators } from './keys.ts'
import { ledger } from './ledger.ts'
import { overview, refusals } from './overview.ts'
import { events, holds, transfers, webhooks } from './transfers.ts'
import { limits, wallets } from './wallets.ts'

export const zhCN: Catalogue = {
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
  gateway: findLocale('zh-CN'),
}
