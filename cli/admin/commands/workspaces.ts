import { formatBalance, type MemberRecord, type WorkspaceRecord } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { ownerUrls } from '../../../services/core/src/config.ts'
import { anyText, UsageError } from '../../command-line/flags.ts'
import { type Command, command } from '../command.ts'
import { cancelMove, moveWorkspace } from '../move/move.ts'
import { moreSentence, pageFlags, readPages } from '../pages.ts'
import { table } from '../table.ts'
import { parseName, parsePlaceNumber } from '../values.ts'
import { reason, user, workspace } from './id-flags.ts'

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
    flags: { workspace, force: { help: 'delete it even if its wallets hold money' }, reason },
    examples: ['--workspace wsp_…', '--workspace wsp_… --force'],
    async run(core, { workspace: workspaceId, force, reason }) {
      await core.workspaces.delete.mutate({ workspaceId, force, reason })
      return { workspaceId, deleted: true }
    },
    print: ({ workspaceId }) => `Deleted workspace ${workspaceId}. Its keys no longer work; its history is kept.`,
  }),
  command({
    noun: 'workspace',
    verb: 'list',
    help: 'list workspaces, newest first',
    flags: {
      name: { value: 'PREFIX', help: 'only workspaces whose name begins with this', parse: anyText },
      deleted: { help: 'also deleted ones' },
      ...pageFlags,
    },
    examples: ['', '--name Acme --deleted'],
    async run(core, { name: namePrefix, deleted, limit, after }) {
      const { entries, next } = await readPages({ limit, after }, async page => {
        const { workspaces, next } = await core.workspaces.list.query({ namePrefix, deleted, ...page })
        return { entries: workspaces, next }
      })
      return { workspaces: entries, next }
    },
    print: ({ workspaces, next }) =>
      workspaces.length > 0 ? printWorkspaces(workspaces) + moreSentence(next) : 'No workspaces found.',
  }),
  command({
    noun: 'workspace',
    verb: 'show',
    help: 'show a workspace: its ledger, members, keys, wallets, transfers and funds',
    flags: { workspace },
    examples: ['--workspace wsp_…'],
    async run(core, { workspace: workspaceId }) {
      const { funds, ...details } = await core.workspaces.get.query({ workspaceId })
      return {
        ...details,
        funds: funds.map(each => ({ ...each, balance: formatBalance(each.balance, each.currency) })),
      }
    },
    print: each =>
      [
        `${each.name} (${each.workspaceId}), created ${each.createdAt.toISOString()}`,
        ...(each.deletedAt ? [`Deleted    ${each.deletedAt.toISOString()}`] : []),
        ...(each.isModified ? ['MODIFIED outside the service: run ledger verify.'] : []),
        `Ledger     ${each.ledger}${each.haltReason === null ? '' : `: ${each.haltReason}`}`,
        `Members    ${each.members}`,
        `API keys   ${each.apiKeys}`,
        `Wallets    ${each.wallets}`,
        `Transfers  ${each.transfers}`,
        ...each.funds.map(({ currency, balance }) => `Funds      ${balance} ${currency}`),
      ].join('\n'),
  }),
  command({
    noun: 'workspace',
    verb: 'move',
    help: 'move a workspace to another place; run it again to continue a move that was interrupted',
    flags: {
      workspace,
      place: { value: 'N', help: 'number of the place: 0 is home', parse: parsePlaceNumber },
      cancel: { help: 'cancel a move that has not arrived: the workspace goes on where it is' },
      reason,
    },
    examples: ['--workspace wsp_… --place 1', '--workspace wsp_… --cancel'],
    async run(core, { workspace: workspaceId, place, cancel, reason }, progress) {
      if ((place === undefined) === !cancel) throw new UsageError('Give either --place or --cancel.')
      const onProgress = (done: number, total: number | null, what: string) => progress.show(done, total, what)
      const options = { workspaceId, ownerUrls: findOwnerUrls(), reason, onProgress }
      return place === undefined ? cancelMove(core, options) : moveWorkspace(core, { ...options, place })
    },
    print: ({ workspaceId, place, stoppedMs }) =>
      `Workspace ${workspaceId} is in place ${place}.${stoppedMs === null ? '' : ` It was stopped for ${(stoppedMs / 1000).toFixed(1)} s.`}`,
  }),
]

/** `services/core` reads the URLs, so that they have the same form as for the migration step. */
const findOwnerUrls = () => ownerUrls(process.env)

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
  command({
    noun: 'member',
    verb: 'list',
    help: 'list the members of a workspace',
    flags: { workspace, removed: { help: 'also those who were removed' }, ...pageFlags },
    examples: ['--workspace wsp_…'],
    async run(core, { workspace: workspaceId, removed, limit, after }) {
      const { entries, next } = await readPages({ limit, after }, async page => {
        const { members, next } = await core.members.list.query({ workspaceId, removed, ...page })
        return { entries: members, next }
      })
      return { members: entries, next }
    },
    print: ({ members, next }) =>
      members.length > 0 ? printMembers(members) + moreSentence(next) : 'No members found.',
  }),
]

type Membership = { workspaceId: string; userId: string }
type MembershipChange = Membership & { reason: string | undefined }

function memberCommand(
  verb: string,
  help: string,
  action: (core: CoreClient, change: MembershipChange) => Promise<void>,
  print: (membership: Membership) => string,
): Command {
  return command({
    noun: 'member',
    verb,
    help,
    flags: { workspace, user, reason },
    examples: ['--workspace wsp_… --user ada@example.com'],
    async run(core, { workspace: workspaceId, user: userId, reason }) {
      await action(core, { workspaceId, userId, reason })
      return { workspaceId, userId }
    },
    print,
  })
}

function printWorkspaces(workspaces: WorkspaceRecord[]): string {
  const rows = workspaces.map(each => [
    each.workspaceId,
    each.deletedAt ? 'DELETED' : each.isModified ? 'MODIFIED' : each.ledger,
    String(each.wallets),
    String(each.transfers),
    each.createdAt.toISOString(),
    each.name,
  ])
  return table(['WORKSPACE', 'STATUS', 'WALLETS', 'TRANSFERS', 'CREATED', 'NAME'], rows)
}

function printMembers(members: MemberRecord[]): string {
  const rows = members.map(each => [
    each.userId,
    each.isModified ? 'MODIFIED' : each.removedAt ? 'REMOVED' : 'MEMBER',
    each.createdAt.toISOString(),
    each.removedAt?.toISOString() ?? '',
  ])
  return table(['USER', 'STATUS', 'ADDED', 'REMOVED'], rows)
}
