/** Flags for workspaces, members and wallets that several commands share. */
import { parseId, parseUser } from '../values.ts'

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
