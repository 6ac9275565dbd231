/** Flags for workspaces and members that several commands share. */
import { parseId, parseUser } from '../values.ts'

export const workspace = {
  value: 'wsp_…',
  help: 'ID of the workspace',
  required: true,
  parse: parseId('workspace'),
} as const
export const user = {
  value: 'USER',
  help: 'ID of the member in your own system',
  required: true,
  parse: parseUser,
} as const
