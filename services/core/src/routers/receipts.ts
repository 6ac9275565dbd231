import {
  checkReceiptInput,
  getTransferInput,
  receiptCheck,
  receiptKeys,
  transferReceipt,
} from '@workspace-wallet/contract'
import { checkReceipt, receiptOf } from '../receipts/operations.ts'
import { publicKeysOf } from '../signing/signing-keys.ts'
import { router } from '../trpc/init.ts'
import { homeReadProcedure, publicKeyProcedure, workspaceReadProcedure } from '../trpc/procedures.ts'

export const receipts = router({
  get: workspaceReadProcedure('transfer:read')
    .meta({ hasOwnLimit: true })
    .input(getTransferInput)
    .output(transferReceipt)
    .query(async ({ ctx, input }) => ({ receipt: await receiptOf(ctx.core, input.workspaceId, input.bizId) })),

  keys: publicKeyProcedure
    .meta({ hasOwnLimit: true })
    .output(receiptKeys)
    .query(({ ctx }) => publicKeysOf(ctx.core.receiptKeys)),

  check: homeReadProcedure
    .meta({ hasOwnLimit: true })
    .input(checkReceiptInput)
    .output(receiptCheck)
    .query(({ ctx: { core, places, token }, input }) =>
      checkReceipt(core.receiptKeys, input.receipt, workspaceId => places.of('workspace', workspaceId, token)),
    ),
})
