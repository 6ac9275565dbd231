import {
  createOperatorInput,
  issuedOperator,
  listOperatorsInput,
  type OperatorRole,
  operatorInput,
  operatorPage,
  rotateOperatorInput,
  session as sessionOutput,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import { createOperator, disableOperator, listOperators, rotateOperator } from '../operators/operations.ts'
import { router } from '../trpc/init.ts'
import { homeAdminProcedure, homeReadProcedure } from '../trpc/procedures.ts'
import { inTransaction } from '../trpc/transactions.ts'

/** People who operate the service, each with a token of their own. */
export const operators = router({
  create: homeAdminProcedure
    .input(createOperatorInput)
    .output(issuedOperator)
    .mutation(({ ctx, input: { reason, ...operator } }) =>
      inTransaction({ ...ctx, reason }, (em, actor) =>
        createOperator(em, ctx.core.operatorChecksumKey, actor, operator),
      ),
    ),

  rotate: homeAdminProcedure
    .input(rotateOperatorInput)
    .output(issuedOperator)
    .mutation(({ ctx, input: { reason, ...rotation } }) =>
      inTransaction({ ...ctx, reason }, (em, actor) =>
        rotateOperator(em, ctx.core.operatorChecksumKey, actor, rotation),
      ),
    ),

  disable: homeAdminProcedure
    .input(operatorInput)
    .output(z.void())
    .mutation(({ ctx, input: { name, reason } }) =>
      inTransaction({ ...ctx, reason }, (em, actor) => disableOperator(em, actor, name)),
    ),

  list: homeReadProcedure
    .input(listOperatorsInput)
    .output(operatorPage)
    .query(({ ctx, input }) => listOperators(ctx.core.orm.em.fork(), input)),
})

/** The token of the caller. */
export const session = router({
  whoami: homeReadProcedure
    .meta({ hasOwnLimit: true })
    .output(sessionOutput)
    .query(({ ctx: { actor, token } }) => {
      const { name, role, expiresAt = null } = token
      return { actor, name, role: role as OperatorRole, expiresAt }
    }),
})
