import { createHmac, type KeyObject } from 'node:crypto'
import type { AuditAction } from '@workspace-wallet/contract'
import { bigint, jsonText, orNull, text, textOf, time, uuid } from './columns.ts'
import { type RowOf, signedValues, withMac } from './table.ts'

/** An action in the audit, in the order in which its MAC covers all columns. */
export const auditColumns = {
  /** Null for an action on no workspace. */
  workspaceId: orNull(uuid('workspace')),
  /** From 1 in the audit of the workspace. */
  position: bigint,
  at: time,
  actor: text,
  action: textOf<AuditAction>(),
  /** The ID of the object of the action. */
  target: text,
  before: orNull(jsonText),
  after: orNull(jsonText),
  /** Why, if the actor has said so. */
  reason: orNull(text),
  /** The call that did it; null for what core does by itself. */
  requestId: orNull(text),
}
export type AuditRow = RowOf<typeof auditColumns>
export const storedAuditColumns = withMac(auditColumns)

/** The content begins with words, like that of signed rows (see table.ts), and ends with the MAC of the action before. */
export function auditMac(key: KeyObject, row: AuditRow, previous: Buffer): Buffer {
  const content = ['audit row', ...signedValues(auditColumns, row), previous.toString('hex')]
  return createHmac('sha256', key).update(JSON.stringify(content)).digest()
}
