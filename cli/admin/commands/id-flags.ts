/** Flags for workspaces, members, wallets and reasons that several commands share. */
import { parseId, parseReason, parseUser } from '../values.ts'

export const workspace = {
  value: 'wsp_…',
  help: 'ID of the workspace',
  required: true,
  parse: parseId('workspace'),
} as const
export const wallet = {
  value: 'wal_…',
  help: 'ID of the wallet',
  required: true,
  parse: parseId('wallet'),
} as const
export const user = {
  value: 'USER',
  help: 'ID of the member in your own system',
  required: true,
  parse: parseUser,
} as const
export const reason = { value: 'TEXT', help: 'why, for the audit log', parse: parseReason } as const
