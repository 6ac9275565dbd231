import { command } from '../command.ts'
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
    print: ({ workspaceId }) => `Workspace ${workspaceId} is there.`,
  }),
  command({
    noun: 'workspace',
    verb: 'delete',
    help: 'delete a workspace: its keys stop working at once, its history is kept',
    flags: { workspace, force: { help: 'delete it even if its wallets hold money' } },
    examples: ['--workspace wsp_…', '--workspace wsp_… --force'],
    async run(core, { workspace: workspaceId, force }) {
      await core.workspaces.delete.mutate({ workspaceId, force })
      return { workspaceId, deleted: true }
    },
    print: ({ workspaceId }) => `Workspace ${workspaceId} is deleted; its history stays.`,
  }),
]

export const memberCommands = [
  command({
    noun: 'member',
    verb: 'add',
    help: 'add a member to a workspace',
    flags: { workspace, user },
    examples: ['--workspace wsp_… --user ada@example.com'],
    async run(core, { workspace: workspaceId, user: userId }) {
      await core.members.add.mutate({ workspaceId, userId })
      return { workspaceId, userId }
    },
    print: ({ workspaceId, userId }) => `${userId} is a member of ${workspaceId}.`,
  }),
  command({
    noun: 'member',
    verb: 'remove',
    help: "remove a member from a workspace: the member's keys stop working at once",
    flags: { workspace, user },
    examples: ['--workspace wsp_… --user ada@example.com'],
    async run(core, { workspace: workspaceId, user: userId }) {
      await core.members.remove.mutate({ workspaceId, userId })
      return { workspaceId, userId }
    },
    print: ({ workspaceId, userId }) => `${userId} is no longer a member of ${workspaceId}.`,
  }),
]
