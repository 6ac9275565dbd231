import { access, apiKeys } from './api-keys/procedures.ts'
import { audit } from './audit/procedures.ts'
import { events } from './events/procedures.ts'
import { holds } from './holds/procedures.ts'
import { keks } from './keks/procedures.ts'
import { ledger } from './ledger/procedures.ts'
import { limits } from './limits/procedures.ts'
import { receipts } from './receipts/procedures.ts'
import { transfers } from './transfers/procedures.ts'
import { router } from './trpc/init.ts'
import { wallets } from './wallets/procedures.ts'
import { courier, webhooks } from './webhooks/procedures.ts'
import { members, workspaces } from './workspaces/procedures.ts'

/** All procedures of core. Clients know its type. */
export const appRouter = router({
  access,
  apiKeys,
  audit,
  courier,
  events,
  holds,
  keks,
  ledger,
  limits,
  members,
  receipts,
  transfers,
  wallets,
  webhooks,
  workspaces,
})
export type AppRouter = typeof appRouter
