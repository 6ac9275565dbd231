import {
  findInput,
  findResult,
  foundTransfers,
  listFundingsInput,
  transferNameInput,
  transferRecord,
} from '@workspace-wallet/contract'
import { haltIfModified } from '../ledger/store/halt.ts'
import { searchIn } from '../search/bounded-search.ts'
import { findByText } from '../search/find.ts'
import { getFunding, listFundings } from '../search/transfers.ts'
import { router } from '../trpc/init.ts'
import { operatorReadProcedure } from '../trpc/procedures.ts'

export const search = router({
  find: operatorReadProcedure
    .input(findInput)
    .output(findResult)
    .query(({ ctx: { core, actor }, input }) => findByText(core, actor, input.text)),
})

/** Deposits and withdrawals. */
export const fundings = router({
  list: operatorReadProcedure
    .input(listFundingsInput)
    .output(foundTransfers)
    .query(({ ctx: { core, actor }, input }) =>
      searchIn(core, { actor, blamed: 'from', read: em => listFundings(em, input) }),
    ),

  get: operatorReadProcedure
    .input(transferNameInput)
    .output(transferRecord)
    .query(({ ctx: { core, actor }, input }) => haltIfModified(core, () => getFunding(core, actor, input))),
})
