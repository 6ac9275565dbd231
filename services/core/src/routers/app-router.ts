import type { inferRouterOutputs } from '@trpc/server'
import { router } from '../trpc/init.ts'
import { access, apiKeys } from './api-keys.ts'
import { audit } from './audit.ts'
import { events } from './events.ts'
import { holds } from './holds.ts'
import { keks } from './keks.ts'
import { ledger } from './ledger.ts'
import { limits } from './limits.ts'
import { moves } from './moves.ts'
import { operators, session } from './operators.ts'
import { receipts } from './receipts.ts'
import { fundings, search } from './search.ts'
import { instances, refusals, system } from './system.ts'
import { transfers } from './transfers.ts'
import { wallets } from './wallets.ts'
import { courier, webhooks } from './webhooks.ts'
import { members, workspaces } from './workspaces.ts'

/** All procedures of core. Clients know its type. */
export const appRouter = router({
  access,
  apiKeys,
  audit,
  courier,
  events,
  fundings,
  holds,
  instances,
  keks,
  ledger,
  limits,
  members,
  moves,
  operators,
  receipts,
  refusals,
  search,
  session,
  system,
  transfers,
  wallets,
  webhooks,
  workspaces,
})
export type AppRouter = typeof appRouter

type Outputs = inferRouterOutputs<AppRouter>
type RouterName = keyof Outputs & string

/** The path of a procedure, such as `transfers.create`. */
export type ProcedurePath = { [Name in RouterName]: `${Name}.${keyof Outputs[Name] & string}` }[RouterName]

/** What the procedure at a path returns. */
export type ProcedureOutput<Path extends ProcedurePath> = Path extends `${infer Name extends RouterName}.${infer Own}`
  ? Outputs[Name][Own & keyof Outputs[Name]]
  : never
