import type { Command } from './command.ts'
import { auditCommands } from './commands/audit.ts'
import { kekCommands } from './commands/keks.ts'
import { keyCommands } from './commands/keys.ts'
import { ledgerCommands } from './commands/ledger.ts'
import { walletCommands } from './commands/wallets.ts'
import { memberCommands, workspaceCommands } from './commands/workspaces.ts'

/** All commands of `npm run admin`. */
export const commands: readonly Command[] = [
  ...workspaceCommands,
  ...memberCommands,
  ...keyCommands,
  ...walletCommands,
  ...ledgerCommands,
  ...auditCommands,
  ...kekCommands,
]
