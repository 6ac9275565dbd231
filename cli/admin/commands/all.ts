import type { Command } from '../command.ts'
import { auditCommands } from './audit.ts'
import { eventCommands } from './events.ts'
import { holdCommands } from './holds.ts'
import { kekCommands } from './keks.ts'
import { keyCommands } from './keys.ts'
import { ledgerCommands } from './ledger.ts'
import { ledgerRecordCommands } from './ledger-records.ts'
import { limitCommands } from './limits.ts'
import { operatorCommands, sessionCommands } from './operators.ts'
import { receiptCommands } from './receipts.ts'
import { searchCommands } from './search.ts'
import { statementCommands } from './statements.ts'
import { refusalCommands, systemCommands } from './system.ts'
import { fundingCommands, transferSearchCommands } from './transfer-search.ts'
import { transferCommands } from './transfers.ts'
import { walletSearch } from './wallet-search.ts'
import { walletCommands } from './wallets.ts'
import { webhookCommands } from './webhooks.ts'
import { memberCommands, workspaceCommands } from './workspaces.ts'

/** All commands of `npm run admin`. */
export const commands: readonly Command[] = [
  ...workspaceCommands,
  ...memberCommands,
  ...keyCommands,
  ...walletCommands,
  walletSearch,
  ...statementCommands,
  ...transferCommands,
  ...transferSearchCommands,
  ...fundingCommands,
  ...receiptCommands,
  ...holdCommands,
  ...limitCommands,
  ...ledgerCommands,
  ...ledgerRecordCommands,
  ...eventCommands,
  ...webhookCommands,
  ...searchCommands,
  ...auditCommands,
  ...refusalCommands,
  ...operatorCommands,
  ...sessionCommands,
  ...systemCommands,
  ...kekCommands,
]
