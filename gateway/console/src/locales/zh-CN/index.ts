import { findLocale } from '@workspace-wallet/gateway/locales'
import type { Catalogue } from '../catalogue.ts'
import { common } from './common.ts'
import { ledger } from './ledger.ts'

export const zhCN: Catalogue = {
  ...common,
  ledger,
  gateway: findLocale('zh-CN'),
}
