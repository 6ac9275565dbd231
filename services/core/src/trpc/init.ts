import { initTRPC } from '@trpc/server'
import { type Scope, serialization } from '@workspace-wallet/contract'
import type { Context } from './context.ts'
import { errorShape } from './error-shape.ts'
import type { Role } from './service-token.ts'

export type Meta = {
  /** Who may call the procedure. Without this, nobody may. */
  callers?: Callers
  /**
   * The level at which successful calls are logged; info by default. Debug is for calls that gateways and couriers make several
   * times a second, and for those that are logged with their batch (ledger/posting/batch-log.ts).
   */
  logLevel?: 'debug'
  /**
   * Set if a call needs no slot of `core.calls`: its statements are shared with those of other calls, or another limit holds for it.
   */
  hasOwnLimit?: boolean
}

export type Callers = {
  /** The roles of service tokens that may call the procedure. */
  roles: readonly Role[]
  /**
   * The scope that an API key needs for which a gateway calls. The input is then a `workspaceCall` on the workspace of that key.
   * Null if no gateway may call the procedure, or if gateways call it for themselves.
   */
  scope: Scope | null
  /** Set if the input names no workspace and no API key. The call is then made at home, whatever the caller sends besides. */
  isOfHome?: boolean
}

export const t = initTRPC
  .context<Context>()
  .meta<Meta>()
  .create({
    transformer: serialization,
    errorFormatter: ({ error, path }) => errorShape(error, path),
  })

export const { router } = t
