import { z } from 'zod'
import {
  accessChanges,
  accessChangesInput,
  accessSnapshot,
  createKeyInput,
  issuedKey,
  kekStatus,
  keyInput,
  keyPage,
  listKeysInput,
  lookupAccessInput,
  nonceMemory,
  nonceMemoryInput,
  rewrapInput,
  rewrapStep,
  rotateKeyInput,
  setExpiryInput,
  setIpsInput,
  setScopesInput,
  usedKeysInput,
} from '../../contract/index.ts'
import { inAccessTransaction, inTransaction, procedureFor, router } from '../trpc.ts'
import { beginNonceMemory } from './nonce-memory.ts'
import {
  createKey,
  deleteKey,
  listKeys,
  rotateKey,
  setKeyExpiry,
  setKeyIps,
  setKeyScopes,
  setKeyStatus,
} from './operations.ts'
import { findAccess, findAccessChanges, markKeysUsed } from './queries.ts'
import { findKekStatus, rewrapSecrets } from './rewrap.ts'

/** The life of a key, for operators. */
export const apiKeys = router({
  create: procedureFor('admin')
    .input(createKeyInput)
    .output(issuedKey)
    .mutation(({ ctx, input }) => inTransaction(ctx, (em, actor) => createKey(em, ctx.core, actor, input))),

  rotate: procedureFor('admin')
    .input(rotateKeyInput)
    .output(issuedKey)
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => rotateKey(em, ctx.core.keyRing, actor, input)),
    ),

  disable: procedureFor('admin')
    .input(keyInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => setKeyStatus(em, actor, input.apiKey, 'DISABLED')),
    ),

  enable: procedureFor('admin')
    .input(keyInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => setKeyStatus(em, actor, input.apiKey, 'ACTIVE')),
    ),

  delete: procedureFor('admin')
    .input(keyInput)
    .output(z.void())
    .mutation(({ ctx, input }) => inAccessTransaction(ctx, (em, actor) => deleteKey(em, actor, input.apiKey))),

  setScopes: procedureFor('admin')
    .input(setScopesInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => setKeyScopes(em, actor, input.apiKey, input.scopes)),
    ),

  setIps: procedureFor('admin')
    .input(setIpsInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => setKeyIps(em, actor, input.apiKey, input.ipAllowlist)),
    ),

  setExpiry: procedureFor('admin')
    .input(setExpiryInput)
    .output(z.object({ expiresAt: z.date().nullable() }))
    .mutation(({ ctx, input }) =>
      inAccessTransaction(ctx, (em, actor) => setKeyExpiry(em, actor, input.apiKey, input.expiresAt)),
    ),

  list: procedureFor('admin')
    .input(listKeysInput)
    .output(keyPage)
    .query(({ ctx, input }) => listKeys(ctx.core.orm.em.fork(), input)),
})

/** The key-encryption keys over API secrets. */
export const keks = router({
  status: procedureFor('admin')
    .output(kekStatus)
    .query(({ ctx }) => findKekStatus(ctx.core.reads, ctx.core.keyRing)),

  rewrap: procedureFor('admin')
    .input(rewrapInput)
    .output(rewrapStep)
    .mutation(({ ctx, input }) => inTransaction(ctx, (em, actor) => rewrapSecrets(em, ctx.core.keyRing, actor, input))),
})

/** What gateways need of the keys that sign requests. */
export const access = router({
  lookup: procedureFor('gateway')
    .input(lookupAccessInput)
    .output(accessSnapshot)
    .query(({ ctx, input }) => findAccess(ctx.core.reads, input.apiKeys)),

  changes: procedureFor('gateway')
    .input(accessChangesInput)
    .output(accessChanges)
    .query(async ({ ctx, input }) => ({ ...(await findAccessChanges(ctx.core.reads, input)), seal: ctx.core.keySeal })),

  markUsed: procedureFor('gateway')
    .input(usedKeysInput)
    .output(z.void())
    .mutation(({ ctx, input }) => markKeysUsed(ctx.core.reads, input.uses)),

  beginNonces: procedureFor('gateway')
    .input(nonceMemoryInput)
    .output(nonceMemory)
    .mutation(({ ctx, input }) =>
      inTransaction(ctx, em => beginNonceMemory(em, `gateway:${ctx.token.name}`, input.memoryId)),
    ),
})
