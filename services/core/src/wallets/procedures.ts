import { randomUUID } from 'node:crypto'
import {
  createWalletInput,
  DomainError,
  flowPage,
  fundingInput,
  fundingReceipt,
  listFlowsInput,
  listWalletsInput,
  type Wallet,
  type WalletStatus,
  wallet,
  walletBalance,
  walletInput,
  walletOfWorkspaceInput,
  walletPage,
} from '@workspace-wallet/contract'
import type { Context } from '../trpc/context.ts'
import { router } from '../trpc/init.ts'
import { adminProcedure, fundingProcedure, walletReadProcedure, workspaceReadProcedure } from '../trpc/procedures.ts'
import { inTransaction } from '../trpc/transactions.ts'
import { createWallet, type Funding, fundWallet, setWalletStatus } from './operations.ts'
import { findWallet, listFlows, listWallets } from './queries.ts'

export const wallets = router({
  get: walletReadProcedure
    .input(walletInput)
    .output(wallet)
    .query(({ ctx, input }) => walletOf(ctx, input)),

  balance: walletReadProcedure
    .input(walletInput)
    .output(walletBalance)
    .query(async ({ ctx, input }) => {
      const { walletId, currency, balance, updatedAt } = await walletOf(ctx, input)
      return { walletId, currency, balance, available: balance, updatedAt }
    }),

  list: workspaceReadProcedure
    .input(listWalletsInput)
    .output(walletPage)
    .query(async ({ ctx, input }) => {
      const page = await listWallets(ctx.core.lists, input.workspaceId, input)
      if (!page) throw new DomainError('GA2032')
      return page
    }),

  flows: workspaceReadProcedure
    .input(listFlowsInput)
    .output(flowPage)
    .query(async ({ ctx, input }) => {
      const { workspaceId, walletId } = input
      const page = await listFlows(ctx.core.lists, workspaceId, walletId, input)
      if (!page) throw new DomainError('W001', { field: 'walletId' })
      return page
    }),

  create: adminProcedure
    .input(createWalletInput)
    .output(wallet)
    .mutation(({ ctx, input }) =>
      inTransaction(ctx, (em, actor) => createWallet(em, { actor, chainKey: ctx.core.chainKey }, input)),
    ),

  freeze: statusProcedure('FROZEN'),
  unfreeze: statusProcedure('ACTIVE'),
  close: statusProcedure('CLOSED'),

  deposit: fundingOf('DEPOSIT'),
  withdraw: fundingOf('WITHDRAWAL'),
})

async function walletOf(ctx: Context, { workspaceId, walletId }: { workspaceId: string; walletId: string }) {
  const found: Wallet | null = await findWallet(ctx.core.reads, workspaceId, walletId)
  if (!found) throw new DomainError('W001', { field: 'walletId' })
  return found
}

function statusProcedure(status: WalletStatus) {
  return adminProcedure
    .input(walletOfWorkspaceInput)
    .output(wallet)
    .mutation(({ ctx, input }) =>
      inTransaction(ctx, (em, actor) => setWalletStatus(em, { actor, chainKey: ctx.core.chainKey }, input, status)),
    )
}

function fundingOf(type: Funding['type']) {
  return fundingProcedure
    .input(fundingInput)
    .output(fundingReceipt)
    .mutation(({ ctx, input: { caller, ...funding } }) =>
      fundWallet(ctx.core, { ...funding, type, actor: ctx.actor, requestId: caller?.requestId ?? randomUUID() }),
    )
}
