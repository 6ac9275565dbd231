import { createHmac, type KeyObject } from 'node:crypto'
import { type EventType, type Uuid, webhookStatuses } from '@workspace-wallet/contract'
import { bigint, bytes, integer, list, oneOf, orNull, primary, smallint, text, time, uuid } from './columns.ts'
import { type RowOf, rowMac } from './table.ts'

/** The state of delivery is not among them: it changes with every lease, without a new revision. */
export const webhookColumns = {
  id: primary(uuid('webhook')),
  workspaceId: uuid('workspace'),
  bizId: text,
  bizIdMac: bytes,
  url: text,
  types: list<EventType>(),
  concurrency: smallint,
  status: oneOf(webhookStatuses),
  secret: text,
  secretVersion: integer,
  previousSecret: orNull(text),
  previousSecretUntil: orNull(time),
  deletedAt: orNull(time),
  createdAt: time,
  updatedAt: time,
  revision: bigint,
}
export type WebhookRow = RowOf<typeof webhookColumns>

export function webhookMac(key: KeyObject, row: WebhookRow): Buffer {
  return rowMac(key, 'webhook', webhookColumns, row)
}

/**
 * The name of a webhook in its workspace, which nobody can compute without the chain key: it is unique, so that a row that was not
 * written by the service takes no bizId.
 */
export function webhookBizIdMac(key: KeyObject, workspaceId: Uuid<'workspace'>, bizId: string): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify(['webhook bizId', workspaceId, bizId]))
    .digest()
}
