import { initTRPC } from '@trpc/server'
import { serialization } from '@workspace-wallet/contract'
import type { Context } from './context.ts'
import { errorShape } from './errors.ts'
import type { Role } from './service-token.ts'

/** `roles`: the roles of service tokens that may call the procedure. Without them, nobody may. */
export type Meta = { roles: readonly Role[] }

export const t = initTRPC
  .context<Context>()
  .meta<Meta>()
  .create({
    transformer: serialization,
    errorFormatter: ({ error, path }) => errorShape(error, path),
  })

export const { router } = t
