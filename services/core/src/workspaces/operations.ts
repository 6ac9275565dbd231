import type { KeyObject } from 'node:crypto'
import { AdminError, type Id, mintId, uuidFromId } from '@workspace-wallet/contract'
import { beginAccessChange, markKeysChanged } from '../access/revision.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, replaceRow, requireGenuine } from '../database/row-signer.ts'
import { runIn } from '../database/run.ts'
import { idToFind } from '../database/types.ts'
import type { Ledger } from '../ledger/rows/entities.ts'
import { changeLedgerStatus, openLedger } from '../ledger/rows/functions.ts'
import { lockLedger } from '../ledger/rows/lock.ts'
import { findWalletsWithMoney } from '../wallets/queries.ts'
import { Member, Workspace } from './entities.ts'

/** Creates a workspace with an empty ledger. */
export async function createWorkspace(
  em: Em,
  { actor, chainKey, place }: { actor: string; chainKey: KeyObject; place: number },
  name: string,
): Promise<{ workspaceId: Id<'workspace'> }> {
  const workspaceId = mintId('workspace')
  const now = await databaseTime(em)
  em.create(Workspace, { id: workspaceId, name, createdIn: place, createdAt: now, updatedAt: now })
  await openLedger(runIn(em), chainKey, uuidFromId('workspace', workspaceId), now)
  recordAction(em, { actor, action: 'workspace.create', workspaceId, target: workspaceId, after: { name } })
  await em.flush()
  return { workspaceId }
}

/**
 * Marks a workspace as deleted: its keys stop working and its ledger takes no more postings. Its history remains.
 *
 * @throws AdminError NOT_FOUND; WORKSPACE_HOLDS_MONEY while a wallet holds money, unless forced
 */
export async function deleteWorkspace(
  em: Em,
  { actor, chainKey }: { actor: string; chainKey: KeyObject },
  workspaceId: string,
  force: boolean,
): Promise<void> {
  const { accessRevision, now } = await beginAccessChange(em)
  const workspace = await findExisting(em, workspaceId)
  const ledger = await lockOrOpenLedger(em, chainKey, workspace.id, now)
  const walletsWithMoney = await findWalletsWithMoney(em, workspace.id)
  if (walletsWithMoney.length > 0 && !force)
    throw new AdminError(
      'WORKSPACE_HOLDS_MONEY',
      `${walletsWithMoney.length} wallet(s) of ${workspaceId} hold money: withdraw it first, or give --force.`,
    )
  workspace.deletedAt = workspace.updatedAt = now
  // Even if they were modified outside the service: nothing uses the rows of a deleted workspace.
  replaceRow(workspace)
  const { row, mac } = ledger
  await changeLedgerStatus(runIn(em), chainKey, { ...row, mac }, { ...row, status: 'CLOSED' }, true)
  recordAction(em, {
    actor,
    action: 'workspace.delete',
    workspaceId: workspace.id,
    target: workspaceId,
    after: { force, walletsWithMoney },
  })
  await em.flush()
  await markKeysChanged(em, { workspaceId }, accessRevision)
}

/** A workspace that was written outside the service may have no ledger. Every workspace has one, also a deleted one. */
async function lockOrOpenLedger(em: Em, chainKey: KeyObject, workspaceId: Id<'workspace'>, now: Date): Promise<Ledger> {
  const ledger = await lockLedger(em, workspaceId)
  if (ledger) return ledger
  await openLedger(runIn(em), chainKey, uuidFromId('workspace', workspaceId), now)
  return (await lockLedger(em, workspaceId))!
}

/** Adds a member, or a removed member again. @throws AdminError NOT_FOUND, ALREADY_EXISTS */
export async function addMember(em: Em, actor: string, workspaceId: string, userId: string): Promise<void> {
  // If two callers add the same user, the second one waits here and then finds the member.
  const { accessRevision, now } = await beginAccessChange(em)
  const { id } = await findWorkspace(em, workspaceId)
  const member = await em.findOne(Member, { workspaceId: id, userId })
  // A row that was written outside the service does not make the user a member, and does not keep them from becoming one.
  if (member && !member.removedAt && isGenuine(member))
    throw new AdminError('ALREADY_EXISTS', `${userId} is a member of ${workspaceId} already.`)
  if (member) {
    replaceRow(member)
    em.assign(member, { createdAt: now, removedAt: null })
  } else em.create(Member, { workspaceId: id, userId, createdAt: now })
  recordAction(em, { actor, action: 'member.add', workspaceId: id, target: userId })
  await em.flush()
  await markKeysChanged(em, { workspaceId, ownerUserId: userId }, accessRevision)
}

/** Removes a member; the keys of that member get GA2034. @throws AdminError NOT_FOUND */
export async function removeMember(em: Em, actor: string, workspaceId: string, userId: string): Promise<void> {
  const { accessRevision, now } = await beginAccessChange(em)
  const member = await em.findOne(Member, { workspaceId: idToFind('workspace', workspaceId), userId, removedAt: null })
  if (!member) throw new AdminError('NOT_FOUND', `${userId} is not a member of ${workspaceId}.`)
  replaceRow(member)
  member.removedAt = now
  recordAction(em, { actor, action: 'member.remove', workspaceId: member.workspaceId, target: userId })
  await em.flush()
  await markKeysChanged(em, { workspaceId, ownerUserId: userId }, accessRevision)
}

/** @throws AdminError NOT_FOUND if the workspace does not exist or is deleted; as `requireGenuine` */
export async function findWorkspace(em: Em, workspaceId: string): Promise<Workspace> {
  const workspace = await findExisting(em, workspaceId)
  requireGenuine(workspace)
  return workspace
}

/** A workspace, also one that was modified outside the service. @throws AdminError NOT_FOUND */
async function findExisting(em: Em, workspaceId: string): Promise<Workspace> {
  const workspace = await em.findOne(Workspace, { id: idToFind('workspace', workspaceId), deletedAt: null })
  if (!workspace) throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  return workspace
}
