/** Flags that name a workspace or a member, shared by the commands. */
import { parseId, parseUser } from '../values.ts'

export const workspace = { value: 'wsp_…', help: 'the workspace', required: true, parse: parseId('workspace') } as const
export const user = {
  value: 'USER',
  help: 'the member, by a name of your own',
  required: true,
  parse: parseUser,
} as const
