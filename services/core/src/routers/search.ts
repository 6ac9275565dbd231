import {
  findInput,
  findResult,
  foundTransfers,
  listFundingsInput,
  transferNameInput,
  transferRecord,
} from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { haltIfModified } from '../ledger/store/halt.ts'
import { searchIn } from '../search/bounded-search.ts'
import { findByText, mergeFound } from '../search/find.ts'
import { placeOfTransfer, placesOfTransfers } from '../search/transfer-places.ts'
import { getFunding, listFundings, mergeTransfers } from '../search/transfers.ts'
import { router } from '../trpc/init.ts'
import { homeReadProcedure, operatorReadProcedure } from '../trpc/procedures.ts'

export const search = router({
  find: homeReadProcedure
    .meta({ hasOwnLimit: true })
    .input(findInput)
    .output(findResult)
    .query(async ({ ctx, input }) =>
      mergeFound(await Promise.all(ctx.places.all.map(place => findByText(place, ctx, input.text)))),
    ),
})

/** Deposits and withdrawals. */
export const fundings = router({
  list: operatorReadProcedure
    .meta({ hasOwnLimit: true })
    .input(listFundingsInput)
    .output(foundTransfers)
    .query(async ({ ctx, input }) => {
      const search = { blamed: 'from', read: (em: Em) => listFundings(em, input) }
      const pages = (await placesOfTransfers(ctx, input)).map(place => searchIn(place, ctx, search))
      return mergeTransfers(await Promise.all(pages), input.limit)
    }),

  get: operatorReadProcedure
    .meta({ hasOwnLimit: true })
    .input(transferNameInput)
    .output(transferRecord)
    .query(async ({ ctx, input }) => {
      const place = await placeOfTransfer(ctx, input)
      return haltIfModified(place, () => getFunding(place, ctx, input))
    }),
})
