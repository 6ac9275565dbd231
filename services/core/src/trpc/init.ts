import { initTRPC } from '@trpc/server'
import { serialization } from '@workspace-wallet/contract'
import type { Context } from './context.ts'
import { errorShape } from './error-shape.ts'
import type { Role } from './service-token.ts'

export type Meta = {
  /** The roles of service tokens that may call the procedure. Without them, nobody may. */
  roles: readonly Role[]
  /** Whether its input is a `workspaceCall`. A gateway may then name only the workspace of the API key that it acts for. */
  isOnWorkspace?: boolean
}

export const t = initTRPC
  .context<Context>()
  .meta<Meta>()
  .create({
    transformer: serialization,
    errorFormatter: ({ error, path }) => errorShape(error, path),
  })

export const { router } = t
