import type { CoreClient } from '@workspace-wallet/core-client'
import { type Command, command } from '../command.ts'
import { parseName } from '../values.ts'
import { user, workspace } from './id-flags.ts'

export const workspaceCommands = [
  command({
    noun: 'workspace',
    verb: 'create',
    help: 'create a workspace',
    flags: { name: { value: 'NAME', help: 'display name of the workspace', required: true, parse: parseName } },
    examples: ['--name Acme'],
    run: (core, { name }) => core.workspaces.create.mutate({ name }),
    print: ({ workspaceId }) => `Created workspace ${workspaceId}.`,
  }),
  command({
    noun: 'workspace',
    verb: 'delete',
    help: 'delete a workspace: its keys stop working at once, and its history is kept',
    flags: { workspace, force: { help: 'delete it even if its wallets hold money' } },
    examples: ['--workspace wsp_…', '--workspace wsp_… --force'],
    async run(core, { workspace: workspaceId, force }) {
      await core.workspaces.delete.mutate({ workspaceId, force })
      return { workspaceId, deleted: true }
    },
    print: ({ workspaceId }) => `Deleted workspace ${workspaceId}. Its keys no longer work; its history is kept.`,
  }),
]

export const memberCommands = [
  memberCommand(
    'add',
    'add a member to a workspace',
    (core, input) => core.members.add.mutate(input),
    ({ workspaceId, userId }) => `Added ${userId} to workspace ${workspaceId}.`,
  ),
  memberCommand(
    'remove',
    "remove a member from a workspace: the member's keys stop working at once",
    (core, input) => core.members.remove.mutate(input),
    ({ workspaceId, userId }) => `Removed ${userId} from workspace ${workspaceId}. The member's keys no longer work.`,
  ),
]

type Membership = { workspaceId: string; userId: string }

function memberCommand(
  verb: string,
  help: string,
  action: (core: CoreClient, membership: Membership) => Promise<void>,
  print: (membership: Membership) => string,
): Command {
  return command({
    noun: 'member',
    verb,
    help,
    flags: { workspace, user },
    examples: ['--workspace wsp_… --user ada@example.com'],
    async run(core, { workspace: workspaceId, user: userId }) {
      await action(core, { workspaceId, userId })
      return { workspaceId, userId }
    },
    print,
  })
}
