import { AccessChange, AccessRevision } from './access/entities.ts'
import { ApiKey } from './api-keys/entities.ts'
import { AuditEntry, AuditHead } from './audit/entities.ts'
import { Journal } from './events/entities.ts'
import { Hold } from './holds/entities.ts'
import { Instance } from './instances/entities.ts'
import { CheckpointPart } from './integrity/checkpoints/entities.ts'
import { VerifiedLedger } from './integrity/verify/entities.ts'
import { ChainKey } from './ledger/chain/entities.ts'
import { Ledger } from './ledger/rows/entities.ts'
import { SpendingLimit } from './limits/entities.ts'
import { WorkspaceMove } from './moves/entities.ts'
import { Operator } from './operators/entities.ts'
import { Refusal } from './refusals/entities.ts'
import { Transfer } from './transfers/entities.ts'
import { Currency, Wallet } from './wallets/entities.ts'
import { Webhook } from './webhooks/entities.ts'
import { Member, Workspace } from './workspaces/entities.ts'

/** All entities, one for each table. */
export const entities = [
  AccessChange,
  AccessRevision,
  ApiKey,
  AuditEntry,
  AuditHead,
  ChainKey,
  CheckpointPart,
  Currency,
  Hold,
  Instance,
  Journal,
  Ledger,
  Member,
  Operator,
  Refusal,
  SpendingLimit,
  Transfer,
  VerifiedLedger,
  Wallet,
  Webhook,
  Workspace,
  WorkspaceMove,
] as const
