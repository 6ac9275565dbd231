import { callTRPCProcedure, TRPCError } from '@trpc/server'
import { appRouter } from '../../services/core/src/router.ts'
import type { Context } from '../../services/core/src/trpc/context.ts'

export type Procedure = { path: string; type: 'query' | 'mutation'; roles: readonly string[] | undefined }

/** Every procedure of core. */
export function findProcedures(): Promise<Procedure[]> {
  return Promise.all(
    proceduresIn('', appRouter).map(async ([path, { meta }]) => ({
      path,
      type: await typeOf(path),
      roles: meta?.roles,
    })),
  )
}

type Declared = { meta?: { roles?: readonly string[] } }

/** A router is a tree of routers, with functions for leaves. */
function proceduresIn(parent: string, router: object): [path: string, procedure: Declared][] {
  return Object.entries(router).flatMap(([name, value]: [string, unknown]): [string, Declared][] => {
    if (name === '_def' || name === 'createCaller') return []
    const path = parent ? `${parent}.${name}` : name
    return typeof value === 'function' ? [[path, value as Declared]] : proceduresIn(path, value as object)
  })
}

/** What it can be called as, by somebody who may call nothing. */
async function typeOf(path: string): Promise<Procedure['type']> {
  const core = { metrics: { answered() {} }, log: { isLevelEnabled: () => false } }
  const ctx = { core, token: { name: 'nobody', role: 'nobody' } } as unknown as Context
  const getRawInput = async () => undefined
  const call = { router: appRouter, path, ctx, getRawInput, signal: undefined, batchIndex: 0, type: 'query' } as const
  const refusal = await callTRPCProcedure(call).catch((error: unknown) => error)
  if (!(refusal instanceof TRPCError)) throw new Error(`${path} may be called by anybody`)
  return refusal.code === 'NOT_FOUND' ? 'mutation' : 'query'
}
