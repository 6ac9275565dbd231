import { access, apiKeys } from './routers/api-keys.ts'
import { audit } from './routers/audit.ts'
import { events } from './routers/events.ts'
import { holds } from './routers/holds.ts'
import { keks } from './routers/keks.ts'
import { ledger } from './routers/ledger.ts'
import { limits } from './routers/limits.ts'
import { receipts } from './routers/receipts.ts'
import { transfers } from './routers/transfers.ts'
import { wallets } from './routers/wallets.ts'
import { courier, webhooks } from './routers/webhooks.ts'
import { members, workspaces } from './routers/workspaces.ts'
import { router } from './trpc/init.ts'

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
