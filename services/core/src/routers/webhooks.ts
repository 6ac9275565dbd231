import {
  createWebhookInput,
  deletedWebhook,
  deleteWebhookInput,
  deliveryReport,
  deliveryReportAnswer,
  issuedWebhook,
  lease,
  leaseInput,
  listWebhooksInput,
  mintId,
  modifiedWebhooks,
  modifiedWebhooksInput,
  rotatedWebhook,
  rotateWebhookInput,
  seekWebhookInput,
  updateWebhookInput,
  uuidFromId,
  webhook,
  webhookInput,
  webhookPage,
} from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { router } from '../trpc/init.ts'
import {
  courierProcedure,
  operatorReadProcedure,
  workspaceCommandProcedure,
  workspaceProcedure,
  workspaceReadProcedure,
} from '../trpc/procedures.ts'
import { inTransaction, inWorkspaceTransaction } from '../trpc/transactions.ts'
import { leaseInTurns } from '../webhooks/lease-turns.ts'
import { leaseDue, readDeliveries } from '../webhooks/leases.ts'
import {
  createWebhook,
  deleteWebhook,
  findModified,
  findWebhook,
  listWebhooks,
  requireAllowedUrl,
  rotateWebhook,
  seekWebhook,
  updateWebhook,
} from '../webhooks/operations.ts'
import { findRevokedLeases } from '../webhooks/queries.ts'
import { reportDeliveries } from '../webhooks/reports.ts'
import { newWebhookSecret } from '../webhooks/secrets.ts'

export const webhooks = router({
  create: workspaceProcedure('webhook:manage')
    .meta({ hasOwnLimit: true })
    .input(createWebhookInput)
    .output(issuedWebhook)
    .mutation(({ ctx, input }) => {
      const { keyRing, chainKey, log, webhookNetworks } = ctx.core
      requireAllowedUrl(input.url, webhookNetworks)
      const minted = { webhookId: mintId('webhook'), secret: newWebhookSecret() }
      const create = (em: Em, actor: string) => createWebhook(em, { actor, keyRing, chainKey, log }, minted, input)
      return inWorkspaceTransaction(ctx, { workspaceId: input.workspaceId, isIdempotent: true }, create)
    }),

  update: workspaceCommandProcedure('webhook:manage')
    .meta({ hasOwnLimit: true })
    .input(updateWebhookInput)
    .output(webhook)
    .mutation(({ ctx, input: { reason, ...input } }) => {
      if (input.url !== undefined) requireAllowedUrl(input.url, ctx.core.webhookNetworks)
      const update = (em: Em, actor: string) => updateWebhook(em, actor, input)
      const { workspaceId } = input
      return inWorkspaceTransaction({ ...ctx, reason }, { workspaceId, isIdempotent: true }, update)
    }),

  rotate: workspaceProcedure('webhook:manage')
    .meta({ hasOwnLimit: true })
    .input(rotateWebhookInput)
    .output(rotatedWebhook)
    .mutation(({ ctx, input }) => {
      const { keyRing } = ctx.core
      const secret = newWebhookSecret()
      const rotate = (em: Em, actor: string) => rotateWebhook(em, { actor, keyRing }, secret, input)
      // Repeated, it would make another secret.
      return inWorkspaceTransaction(ctx, { workspaceId: input.workspaceId, isIdempotent: false }, rotate)
    }),

  seek: workspaceCommandProcedure('webhook:manage')
    .meta({ hasOwnLimit: true })
    .input(seekWebhookInput)
    .output(webhook)
    .mutation(({ ctx, input: { reason, ...input } }) => {
      const seek = (em: Em, actor: string) => seekWebhook(em, actor, input)
      // Repeated, it would take back what was delivered since.
      const { workspaceId } = input
      return inWorkspaceTransaction({ ...ctx, reason }, { workspaceId, isIdempotent: false }, seek)
    }),

  delete: workspaceCommandProcedure('webhook:manage')
    .meta({ hasOwnLimit: true })
    .input(deleteWebhookInput)
    .output(deletedWebhook)
    .mutation(async ({ ctx, input: { workspaceId, webhookId, reason } }) => {
      const remove = (em: Em, actor: string) => deleteWebhook(em, actor, workspaceId, webhookId)
      await inWorkspaceTransaction({ ...ctx, reason }, { workspaceId, isIdempotent: true }, remove)
      return { webhookId }
    }),

  get: workspaceReadProcedure('webhook:manage')
    .input(webhookInput)
    .output(webhook)
    .query(({ ctx, input: { workspaceId, webhookId } }) =>
      findWebhook(ctx.core.orm.em.fork(), ctx.actor, workspaceId, webhookId),
    ),

  list: workspaceReadProcedure('webhook:manage')
    .input(listWebhooksInput)
    .output(webhookPage)
    .query(({ ctx, input }) => listWebhooks(ctx.core.orm.em.fork(), { actor: ctx.actor, log: ctx.core.log }, input)),

  modified: operatorReadProcedure
    .input(modifiedWebhooksInput)
    .output(modifiedWebhooks)
    .query(async ({ ctx, input: { workspaceId } }) => ({
      webhookIds: await findModified(ctx.core.orm.em.fork(), workspaceId),
    })),
})

/** What couriers call. They receive events that core has signed, and have no secret themselves. */
export const courier = router({
  lease: courierProcedure
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .input(leaseInput)
    .output(lease)
    .mutation(async ({ ctx, input: { size, except, held } }) => {
      const { home, all } = ctx.places
      const others = except?.flatMap(id => uuidFromId('workspace', id) ?? []) ?? null
      return leaseInTurns(all, home.log, size, async (core, size) => {
        const { revoked, leases } = await core.courierCalls.run(ctx.token.name, async () => ({
          revoked: await findRevokedLeases(core.reads, held),
          leases: size > 0 ? await leaseDue(core, action => inTransaction({ ...ctx, core }, action), size, others) : [],
        }))
        return { webhooks: await readDeliveries(core, leases), revoked }
      })
    }),

  report: courierProcedure
    .meta({ logLevel: 'debug', hasOwnLimit: true })
    .input(deliveryReport)
    .output(deliveryReportAnswer)
    .mutation(async ({ ctx, input }) => {
      const core = await ctx.places.of('webhook', input.webhookId, ctx.token)
      return core.courierCalls.run(ctx.token.name, () =>
        inTransaction({ ...ctx, core }, em => reportDeliveries(em, input)),
      )
    }),
})
