/** The typed client of core. It re-exports what its callers need of the contract, which is not a package of its own. */
export {
  type AdminErrorCode,
  type AuditEntry,
  type Caller,
  type CheckpointPart,
  type CreateBatchBody,
  type CreateHoldBody,
  type CreateTransferBody,
  Decimal,
  DomainError,
  decimalsOf,
  type ErrorCode,
  type ErrorDetails,
  type Event,
  type EventData,
  type EventPage,
  type EventType,
  errorTable,
  eventsOf,
  type Flow,
  type FundingReceipt,
  formatBalance,
  type Hold,
  isErrorCode,
  type KeyRecord,
  type Page,
  type RepairResult,
  type Scope,
  type TransferBatch,
  type TransferOrder,
  type VerifyReport,
  type Wallet,
  type WalletBalance,
  type WalletStatus,
} from '@workspace-wallet/contract'
export type { AppRouter, ProcedureOutput, ProcedurePath } from '../../../services/core/src/routers/app-router.ts'
export {
  type CoreDomainError,
  type CoreErrorData,
  domainErrorOf,
  type InputFault,
  inputFaultsOf,
  noAnswerErrorOf,
} from './call-errors.ts'
export { checkpointLines } from './checkpoint.ts'
export { type CoreClient, type CoreClientOptions, createCoreClient } from './core-client.ts'
export { CallAborted, CoreRejected, CoreUnreachable, NoAnswerError } from './errors.ts'
export { type KekStatus, readKekStatus } from './keks.ts'
export { reopenLedger, repairLedger, type VerifyOptions, type VerifyProgress, verifyLedger } from './ledger.ts'
export { wasNeverSent } from './request-failures.ts'
