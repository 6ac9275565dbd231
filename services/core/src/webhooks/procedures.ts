import {
  createWebhookInput,
  deletedWebhook,
  deliveryReport,
  deliveryReportAnswer,
  issuedWebhook,
  lease,
  leaseInput,
  listWebhooksInput,
  mintId,
  rotatedWebhook,
  rotateWebhookInput,
  seekWebhookInput,
  updateWebhookInput,
  webhook,
  webhookInput,
  webhookPage,
} from '@workspace-wallet/contract'
import { changerOf } from '../audit/chain/actors.ts'
import type { CallContext } from '../trpc/context.ts'
import { router } from '../trpc/init.ts'
import {
  courierProcedure,
  workspaceCommandProcedure,
  workspaceProcedure,
  workspaceReadProcedure,
} from '../trpc/procedures.ts'
import { inTransaction, repeatIfUnknown } from '../trpc/transactions.ts'
import { readDeliveries, takeLeases } from './leases.ts'
import {
  createWebhook,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  requireAllowedUrl,
  rotateWebhook,
  seekWebhook,
  updateWebhook,
} from './operations.ts'
import { findRevokedLeases } from './queries.ts'
import { reportDeliveries } from './reports.ts'
import { newWebhookSecret } from './secrets.ts'

export const webhooks = router({
  create: workspaceProcedure
    .input(createWebhookInput)
    .output(issuedWebhook)
    .mutation(({ ctx, input }) => {
      const { keyRing, webhookNetworks } = ctx.core
      requireAllowedUrl(input.url, webhookNetworks)
      const minted = { webhookId: mintId('webhook'), secret: newWebhookSecret() }
      const create = () => inTransaction(ctx, (em, actor) => createWebhook(em, { actor, keyRing }, minted, input))
      return changeWebhooks(ctx, input, () => repeatIfUnknown(create))
    }),

  update: workspaceCommandProcedure
    .input(updateWebhookInput)
    .output(webhook)
    .mutation(({ ctx, input }) => {
      if (input.url !== undefined) requireAllowedUrl(input.url, ctx.core.webhookNetworks)
      return changeWebhooks(ctx, input, () =>
        repeatIfUnknown(() => inTransaction(ctx, (em, actor) => updateWebhook(em, actor, input))),
      )
    }),

  rotate: workspaceProcedure
    .input(rotateWebhookInput)
    .output(rotatedWebhook)
    .mutation(({ ctx, input }) => {
      const { keyRing } = ctx.core
      const secret = newWebhookSecret()
      return changeWebhooks(ctx, input, () =>
        inTransaction(ctx, (em, actor) => rotateWebhook(em, { actor, keyRing }, secret, input)),
      )
    }),

  seek: workspaceCommandProcedure
    .input(seekWebhookInput)
    .output(webhook)
    .mutation(({ ctx, input }) =>
      changeWebhooks(ctx, input, () => inTransaction(ctx, (em, actor) => seekWebhook(em, actor, input))),
    ),

  delete: workspaceCommandProcedure
    .input(webhookInput)
    .output(deletedWebhook)
    .mutation(async ({ ctx, input }) => {
      const { workspaceId, webhookId } = input
      await changeWebhooks(ctx, input, () =>
        repeatIfUnknown(() => inTransaction(ctx, (em, actor) => deleteWebhook(em, actor, workspaceId, webhookId))),
      )
      return { webhookId }
    }),

  get: workspaceReadProcedure
    .input(webhookInput)
    .output(webhook)
    .query(({ ctx, input: { workspaceId, webhookId } }) => findWebhook(ctx.core.orm.em.fork(), workspaceId, webhookId)),

  list: workspaceReadProcedure
    .input(listWebhooksInput)
    .output(webhookPage)
    .query(({ ctx, input }) => listWebhooks(ctx.core.orm.em.fork(), input)),
})

/** Changes of clients wait for locks: one at a time for each workspace. @throws DomainError S002 if too many wait */
function changeWebhooks<Result>(
  { core, actor }: CallContext,
  { workspaceId }: { workspaceId: string },
  change: () => Promise<Result>,
): Promise<Result> {
  return changerOf(actor) === 'OPERATOR' ? change() : core.lockWaits.run(workspaceId, change)
}

/** What couriers call. They receive events that core has signed, and have no secret themselves. */
export const courier = router({
  lease: courierProcedure
    .input(leaseInput)
    .output(lease)
    .mutation(async ({ ctx, input: { size, held } }) => {
      const { courierCalls, reads } = ctx.core
      const { revoked, leases } = await courierCalls.run(ctx.token.name, async () => ({
        revoked: await findRevokedLeases(reads, held),
        leases: size === 0 ? [] : await inTransaction(ctx, em => takeLeases(em, ctx.core, size)),
      }))
      return { webhooks: await readDeliveries(ctx.core, leases), revoked }
    }),

  report: courierProcedure
    .input(deliveryReport)
    .output(deliveryReportAnswer)
    .mutation(({ ctx, input }) =>
      ctx.core.courierCalls.run(ctx.token.name, () => inTransaction(ctx, em => reportDeliveries(em, input))),
    ),
})
