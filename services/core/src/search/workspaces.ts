import {
  AdminError,
  type MemberListing,
  type MemberPage,
  type WorkspaceDetails,
  type WorkspaceListing,
  type WorkspacePage,
  type WorkspaceRecord,
} from '@workspace-wallet/contract'
import { ApiKey } from '../api-keys/entities.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { idToFind } from '../database/types.ts'
import { Ledger } from '../ledger/rows/entities.ts'
import { mergePages } from '../places/merge.ts'
import { Wallet } from '../wallets/entities.ts'
import { Member, Workspace } from '../workspaces/entities.ts'
import { beginsWith } from './conditions.ts'

/** A page of all workspaces, newest first: IDs sort by time. */
export async function listWorkspaces(
  em: Em,
  { namePrefix, deleted, after, limit }: WorkspaceListing,
): Promise<WorkspacePage> {
  const found = await em.find(
    Workspace,
    {
      ...(!deleted && { deletedAt: null }),
      ...(namePrefix !== undefined && { name: beginsWith(namePrefix) }),
      ...(after !== undefined && { id: { $lt: idToFind('workspace', after) } }),
    },
    { orderBy: { id: 'desc' }, limit: limit + 1 },
  )
  const shown = found.slice(0, limit)
  const ledgers = await em.find(Ledger, { workspaceId: { $in: shown.map(({ id }) => id) } })
  const ledgerOf = new Map(ledgers.map(ledger => [ledger.workspaceId, ledger]))
  const workspaces = shown.map(workspace => toRecord(workspace, ledgerOf.get(workspace.id)))
  return { workspaces, next: found.length > limit ? shown.at(-1)!.id : null }
}

/** A page of the workspaces of all places: their order, and where a page begins, are the same in all. */
export function mergeWorkspaces(pages: readonly WorkspacePage[], limit: number): WorkspacePage {
  const inAll = pages.map(({ workspaces: items, next }) => ({ items, next }))
  const { items, hasMore } = mergePages(inAll, limit, (a, b) => (a.workspaceId < b.workspaceId ? 1 : -1))
  return { workspaces: items, next: hasMore ? items.at(-1)!.workspaceId : null }
}

/** A workspace, also a deleted one. @throws AdminError NOT_FOUND */
export async function getWorkspace(em: Em, asked: string): Promise<WorkspaceDetails> {
  const workspace = await em.findOne(Workspace, { id: idToFind('workspace', asked) })
  if (!workspace) throw new AdminError('NOT_FOUND', `There is no workspace ${asked}.`)
  const workspaceId = workspace.id
  const ledger = await em.findOne(Ledger, { workspaceId })
  const members = await em.count(Member, { workspaceId, removedAt: null })
  const apiKeys = await em.count(ApiKey, { workspaceId, deletedAt: null })
  // All flows of a workspace and currency sum to zero, so the EXTERNAL wallet lacks what the others have.
  const external = await em.find(Wallet, { workspaceId, kind: 'EXTERNAL' }, { orderBy: { currency: 'asc' } })
  const funds = external.map(({ currency, balance }) => ({ currency, balance: balance.negated() }))
  return { ...toRecord(workspace, ledger), members, apiKeys, funds }
}

/** A page of the members of a workspace, in the order of their user IDs. @throws AdminError NOT_FOUND */
export async function listMembers(
  em: Em,
  { workspaceId: asked, removed, after, limit }: MemberListing,
): Promise<MemberPage> {
  const workspaceId = idToFind('workspace', asked)
  if ((await em.count(Workspace, { id: workspaceId })) === 0)
    throw new AdminError('NOT_FOUND', `There is no workspace ${asked}.`)
  const found = await em.find(
    Member,
    { workspaceId, ...(!removed && { removedAt: null }), ...(after !== undefined && { userId: { $gt: after } }) },
    { orderBy: { userId: 'asc' }, limit: limit + 1 },
  )
  const members = found.slice(0, limit).map(member => {
    const { userId, createdAt, removedAt = null } = member
    return { userId, createdAt, removedAt, isModified: !isGenuine(member) }
  })
  return { members, next: found.length > limit ? members.at(-1)!.userId : null }
}

/** A workspace that was written outside the service may have no ledger. */
function toRecord(workspace: Workspace, ledger: Ledger | null | undefined): WorkspaceRecord {
  const { id, name, createdAt, deletedAt = null } = workspace
  return {
    workspaceId: id,
    name,
    createdAt,
    deletedAt,
    ledger: ledger?.status ?? 'CLOSED',
    haltReason: ledger?.haltReason ?? null,
    wallets: ledger?.walletCount ?? 0,
    transfers: ledger?.orderCount ?? 0,
    isModified: !isGenuine(workspace) || !ledger || !isGenuine(ledger),
  }
}
