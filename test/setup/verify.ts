import type { VerifyReport } from '@workspace-wallet/core/contract'
import type { System } from './system.ts'

/** What the verifier says of the whole ledger of a system. */
export async function verifyLedger({ admin }: Pick<System, 'admin'>): Promise<VerifyReport> {
  for await (const event of await admin.ledger.verify.query({})) if (event.kind === 'result') return event.report
  throw new Error('the verification ended without a result')
}
