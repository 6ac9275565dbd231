import { ApiKey } from './api-keys/entities.ts'
import { AuditEntry } from './audit/chain/entities.ts'
import { Ledger } from './ledger/posting/entities.ts'
import { Wallet } from './wallets/entities.ts'
import { Member, Workspace } from './workspaces/entities.ts'

/** Every entity, by name: nothing is discovered. */
export const entities = [ApiKey, AuditEntry, Ledger, Member, Wallet, Workspace] as const
