import {
  balanceAt,
  balanceAtInput,
  type Caller,
  changeWalletStatusInput,
  createWalletInput,
  DomainError,
  type FundingReceipt,
  flowPage,
  flowsAfter,
  flowsAfterInput,
  foundWallets,
  fundingInput,
  fundingReceipt,
  listFlowsInput,
  listWalletsInput,
  searchWalletsInput,
  statementInput,
  type WithdrawalInput,
  wallet,
  walletBalance,
  walletInput,
  walletPage,
  walletStatement,
  withdrawalInput,
} from '@workspace-wallet/contract'
import { changerOf } from '../audit/actors.ts'
import type { Em } from '../database/orm.ts'
import { haltIfModified } from '../ledger/store/halt.ts'
import { searchIn } from '../search/bounded-search.ts'
import { mergeWallets, searchWallets } from '../search/wallets.ts'
import { type CallContext, placesOf } from '../trpc/context.ts'
import { router } from '../trpc/init.ts'
import {
  fundingProcedure,
  internalReadProcedure,
  operatorReadProcedure,
  walletReadProcedure,
  workspaceCommandProcedure,
  workspaceReadProcedure,
} from '../trpc/procedures.ts'
import { inWorkspaceTransaction, type WorkspaceAction } from '../trpc/transactions.ts'
import { type Administration, createWallet, type Funding, fundWallet, setWalletStatus } from '../wallets/operations.ts'
import { readFlowsAfter } from '../wallets/past-balances.ts'
import { findBalance, findWallet, listFlows, listWallets } from '../wallets/queries.ts'
import { balanceAt as findBalanceAt, statementOf } from '../wallets/statements.ts'

export const wallets = router({
  get: walletReadProcedure('wallet:read')
    .meta({ hasOwnLimit: true })
    .input(walletInput)
    .output(wallet)
    .query(async ({ ctx, input }) => {
      const found = await haltIfModified(ctx.core, () => findWallet(ctx.core, input.workspaceId, input.walletId))
      if (!found) throw new DomainError('W001', { field: 'walletId' })
      return found
    }),

  balance: walletReadProcedure('wallet:read')
    .meta({ hasOwnLimit: true })
    .input(walletInput)
    .output(walletBalance)
    .query(async ({ ctx, input }) => {
      const balance = await haltIfModified(ctx.core, () => findBalance(ctx.core, input.workspaceId, input.walletId))
      if (!balance) throw new DomainError('W001', { field: 'walletId' })
      return balance
    }),

  list: workspaceReadProcedure('wallet:read')
    .meta({ hasOwnLimit: true })
    .input(listWalletsInput)
    .output(walletPage)
    .query(async ({ ctx, input }) => {
      const page = await listWallets(ctx.core.lists, input.workspaceId, input)
      if (!page) throw new DomainError('GA2032')
      return page
    }),

  flows: workspaceReadProcedure('wallet:read')
    .meta({ hasOwnLimit: true })
    .input(listFlowsInput)
    .output(flowPage)
    .query(async ({ ctx, input }) => {
      const { workspaceId, walletId } = input
      const page = await listFlows(ctx.core.lists, workspaceId, walletId, input)
      if (!page) throw new DomainError('W001', { field: 'walletId' })
      return page
    }),

  balanceAt: walletReadProcedure('wallet:read')
    .meta({ hasOwnLimit: true })
    .input(balanceAtInput)
    .output(balanceAt)
    .query(({ ctx, input }) => findBalanceAt(ctx.core, input)),

  statement: workspaceReadProcedure('wallet:read')
    .meta({ hasOwnLimit: true })
    .input(statementInput)
    .output(walletStatement)
    .query(({ ctx, input }) => statementOf(ctx.core, input)),

  /** The lines of a statement, in order. */
  flowsAfter: internalReadProcedure
    .meta({ hasOwnLimit: true })
    .input(flowsAfterInput)
    .output(flowsAfter)
    .query(async ({ ctx, input }) => ({
      content: await readFlowsAfter(ctx.core.lists, input.workspaceId, input.walletId, input),
    })),

  create: workspaceCommandProcedure('wallet:manage')
    .meta({ hasOwnLimit: true })
    .input(createWalletInput)
    .output(wallet)
    .mutation(({ ctx, input: { caller, ...input } }) => {
      const isIdempotent = input.bizId !== undefined
      const { workspaceId } = input
      return changeWallets(ctx, { workspaceId, caller, isIdempotent }, (em, by) => createWallet(em, by, input))
    }),

  changeStatus: workspaceCommandProcedure('wallet:manage')
    .meta({ hasOwnLimit: true })
    .input(changeWalletStatusInput)
    .output(wallet)
    .mutation(({ ctx, input: { workspaceId, walletId, caller, status, reason } }) => {
      const wallet = { workspaceId, walletId }
      const change = (em: Em, by: Administration) => setWalletStatus(em, by, wallet, status)
      return changeWallets({ ...ctx, reason }, { workspaceId, caller, isIdempotent: true }, change)
    }),

  deposit: fundingProcedure
    .meta({ hasOwnLimit: true })
    .input(fundingInput)
    .output(fundingReceipt)
    .mutation(({ ctx, input }) => fund(ctx, 'DEPOSIT', input)),

  withdraw: fundingProcedure
    .meta({ hasOwnLimit: true })
    .input(withdrawalInput)
    .output(fundingReceipt)
    .mutation(({ ctx, input }) => fund(ctx, 'WITHDRAWAL', input)),

  search: operatorReadProcedure
    .meta({ hasOwnLimit: true })
    .input(searchWalletsInput)
    .output(foundWallets)
    .query(async ({ ctx, input }) => {
      const search = { blamed: 'workspaceId', read: (em: Em) => searchWallets(em, input) }
      const pages = placesOf(ctx, input.workspaceId).map(place => searchIn(place, ctx, search))
      return mergeWallets(await Promise.all(pages), input.limit)
    }),
})

/**
 * Runs a change of wallets in a transaction. If a client's change finds a row that was modified outside the service, the
 * workspace is halted.
 *
 * @throws as `inWorkspaceTransaction`
 */
async function changeWallets<Result>(
  ctx: CallContext,
  { caller, ...action }: WorkspaceAction & { caller: Caller | undefined },
  change: (em: Em, administration: Administration) => Promise<Result>,
): Promise<Result> {
  const { chainKey } = ctx.core
  const by = changerOf(ctx.actor)
  // Thrown for clients only.
  return haltIfModified(ctx.core, () =>
    inWorkspaceTransaction(ctx, action, (em, actor) =>
      change(em, { actor, by, caller, requestId: ctx.requestId, chainKey }),
    ),
  )
}

function fund(ctx: CallContext, type: Funding['type'], input: WithdrawalInput): Promise<FundingReceipt> {
  const { actor, requestId } = ctx
  const funding = { ...input, type, actor, requestId }
  return haltIfModified(ctx.core, () => fundWallet(ctx.core, funding))
}
