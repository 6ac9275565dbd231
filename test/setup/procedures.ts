import { callTRPCProcedure, TRPCError } from '@trpc/server'
import type { Scope } from '@workspace-wallet/contract'
import { appRouter } from '../../services/core/src/routers/app-router.ts'
import type { Context } from '../../services/core/src/trpc/context.ts'
import type { Meta } from '../../services/core/src/trpc/init.ts'

export type Procedure = {
  path: string
  type: 'query' | 'mutation'
  roles: readonly string[] | undefined
  /** The scope that an API key needs for which a gateway calls. */
  scope: Scope | null | undefined
  isOfHome: boolean
}

/** All procedures of core. */
export function findProcedures(): Promise<Procedure[]> {
  return Promise.all(
    proceduresIn('', appRouter).map(async ([path, { meta }]) => ({
      path,
      type: await typeOf(path),
      roles: meta?.callers?.roles,
      scope: meta?.callers?.scope,
      isOfHome: meta?.callers?.isOfHome ?? false,
    })),
  )
}

type Declared = { meta?: Meta }

/** A router is a tree: routers contain routers and procedures, and procedures are functions. */
function proceduresIn(parent: string, router: object): [path: string, procedure: Declared][] {
  return Object.entries(router).flatMap(([name, value]: [string, unknown]): [string, Declared][] => {
    if (name === '_def' || name === 'createCaller') return []
    const path = parent ? `${parent}.${name}` : name
    return typeof value === 'function' ? [[path, value as Declared]] : proceduresIn(path, value as object)
  })
}

/** Whether a path is a query or a mutation: called as a query without any right, only a mutation is not found. */
async function typeOf(path: string): Promise<Procedure['type']> {
  const core = { metrics: { answered() {} }, sampledLog: { write() {} } }
  const ctx = { core, token: { name: 'nobody', role: 'nobody' } } as unknown as Context
  const getRawInput = async () => undefined
  const call = { router: appRouter, path, ctx, getRawInput, signal: undefined, batchIndex: 0, type: 'query' } as const
  const rejection = await callTRPCProcedure(call).catch((error: unknown) => error)
  if (!(rejection instanceof TRPCError)) throw new Error(`${path} can be called without a role: name its roles.`)
  return rejection.code === 'NOT_FOUND' ? 'mutation' : 'query'
}
