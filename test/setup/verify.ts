import type { VerifyReport } from '@workspace-wallet/contract'
import { verifyLedger as verify } from '@workspace-wallet/core-client'
import type { System } from './system.ts'

/** The verifier's report on all workspaces of a system. */
export function verifyLedger({ admin }: Pick<System, 'admin'>): Promise<VerifyReport> {
  return verify(admin)
}
