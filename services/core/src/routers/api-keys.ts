import {
  accessChanges,
  accessChangesInput,
  accessSnapshot,
  createKeyInput,
  issuedKey,
  keyInput,
  keyPage,
  latestNonceGenerations,
  listKeysInput,
  lookupAccessInput,
  nonceGeneration,
  nonceGenerationInput,
  nonceKey,
  rotateKeyInput,
  setExpiryInput,
  setIpsInput,
  setScopesInput,
  usedKeysInput,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import { findChangesIn, lookUpIn } from '../access/in-places.ts'
import { beginNonceGeneration } from '../access/nonce-generation.ts'
import { markKeysUsed } from '../access/queries.ts'
import {
  createKey,
  deleteKey,
  listKeys,
  rotateKey,
  setKeyExpiry,
  setKeyIps,
  setKeyScopes,
  setKeyStatus,
} from '../api-keys/operations.ts'
import { router } from '../trpc/init.ts'
import { adminProcedure, gatewayProcedure, operatorReadProcedure } from '../trpc/procedures.ts'
import { inAccessTransaction, inTransaction } from '../trpc/transactions.ts'

/** API keys, for operators. */
export const apiKeys = router({
  create: adminProcedure
    .input(createKeyInput)
    .output(issuedKey)
    .mutation(({ ctx, input: { reason, ...key } }) =>
      inTransaction({ ...ctx, reason }, (em, actor) => createKey(em, ctx.core, actor, key)),
    ),

  rotate: adminProcedure
    .input(rotateKeyInput)
    .output(issuedKey)
    .mutation(({ ctx, input: { reason, ...rotation } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => rotateKey(em, ctx.core.keyRing, actor, rotation)),
    ),

  disable: adminProcedure
    .input(keyInput)
    .output(z.void())
    .mutation(({ ctx, input: { apiKey, reason } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => setKeyStatus(em, actor, apiKey, 'DISABLED')),
    ),

  enable: adminProcedure
    .input(keyInput)
    .output(z.void())
    .mutation(({ ctx, input: { apiKey, reason } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => setKeyStatus(em, actor, apiKey, 'ACTIVE')),
    ),

  delete: adminProcedure
    .input(keyInput)
    .output(z.void())
    .mutation(({ ctx, input: { apiKey, reason } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => deleteKey(em, actor, apiKey)),
    ),

  setScopes: adminProcedure
    .input(setScopesInput)
    .output(z.void())
    .mutation(({ ctx, input: { apiKey, scopes, reason } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => setKeyScopes(em, actor, apiKey, scopes)),
    ),

  setIps: adminProcedure
    .input(setIpsInput)
    .output(z.void())
    .mutation(({ ctx, input: { apiKey, ipAllowlist, reason } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => setKeyIps(em, actor, apiKey, ipAllowlist)),
    ),

  setExpiry: adminProcedure
    .input(setExpiryInput)
    .output(z.object({ expiresAt: z.date().nullable() }))
    .mutation(({ ctx, input: { apiKey, expiresAt, reason } }) =>
      inAccessTransaction({ ...ctx, reason }, (em, actor) => setKeyExpiry(em, actor, apiKey, expiresAt)),
    ),

  list: operatorReadProcedure
    .input(listKeysInput)
    .output(keyPage)
    .query(({ ctx, input }) => listKeys(ctx.core.orm.em.fork(), input)),
})

/** What gateways need to authenticate requests. */
export const access = router({
  lookup: gatewayProcedure
    .meta({ hasOwnLimit: true })
    .input(lookupAccessInput)
    .output(accessSnapshot)
    .query(({ ctx, input }) => lookUpIn(ctx.places.all, input.apiKeys, ctx.token.name)),

  changes: gatewayProcedure
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .input(accessChangesInput)
    .output(accessChanges)
    .query(async ({ ctx, input }) => ({
      places: await findChangesIn(ctx.places.all, input.since, ctx.token.name),
      checksumKey: ctx.core.keyIdChecksumKey,
    })),

  markUsed: gatewayProcedure
    .meta({ logLevel: 'debug' })
    .input(usedKeysInput)
    .output(z.void())
    .mutation(async ({ ctx, input }) => {
      // Not with the connections for reads of keys: while a change of access waits for its locks, this waits too.
      await Promise.all(ctx.places.all.map(({ reads }) => markKeysUsed(reads, input.uses)))
    }),

  nonceKey: gatewayProcedure
    .meta({ hasOwnLimit: true })
    .output(nonceKey)
    .query(({ ctx }) => ({ nonceKey: ctx.core.nonceKey })),

  beginNonceGeneration: gatewayProcedure
    .input(nonceGenerationInput)
    .output(nonceGeneration)
    .mutation(({ ctx, input }) =>
      inTransaction(ctx, em => beginNonceGeneration(em, ctx.core.chainKey, ctx.actor, input)),
    ),

  latestNonceGenerations: gatewayProcedure
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .output(latestNonceGenerations)
    .query(({ ctx }) => ctx.core.latestNonceGenerations()),
})
