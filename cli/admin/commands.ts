import type { Command } from './command.ts'
import { auditCommands } from './commands/audit.ts'
import { eventCommands } from './commands/events.ts'
import { holdCommands } from './commands/holds.ts'
import { kekCommands } from './commands/keks.ts'
import { keyCommands } from './commands/keys.ts'
import { ledgerCommands } from './commands/ledger.ts'
import { limitCommands } from './commands/limits.ts'
import { receiptCommands } from './commands/receipts.ts'
import { statementCommands } from './commands/statements.ts'
import { transferCommands } from './commands/transfers.ts'
import { walletCommands } from './commands/wallets.ts'
import { webhookCommands } from './commands/webhooks.ts'
import { memberCommands, workspaceCommands } from './commands/workspaces.ts'

/** All commands of `npm run admin`. */
export const commands: readonly Command[] = [
  ...workspaceCommands,
  ...memberCommands,
  ...keyCommands,
  ...walletCommands,
  ...statementCommands,
  ...transferCommands,
  ...receiptCommands,
  ...holdCommands,
  ...limitCommands,
  ...ledgerCommands,
  ...eventCommands,
  ...webhookCommands,
  ...auditCommands,
  ...kekCommands,
]
