import { initTRPC } from '@trpc/server'
import { type Scope, serialization } from '@workspace-wallet/contract'
import type { Context } from './context.ts'
import { errorShape } from './error-shape.ts'
import type { Role } from './service-token.ts'

export type Meta = {
  /** The roles of service tokens that may call the procedure. Without them, nobody may. */
  roles: readonly Role[]
  /**
   * The scope that an API key needs for which a gateway calls. The input is then a `workspaceCall` on the workspace of that key.
   * Null if no gateway may call the procedure, or if gateways call it for themselves.
   */
  scope: Scope | null
}

export const t = initTRPC
  .context<Context>()
  .meta<Meta>()
  .create({
    transformer: serialization,
    errorFormatter: ({ error, path }) => errorShape(error, path),
  })

export const { router } = t
