import { LockMode } from '@mikro-orm/core'
import { AdminError, Decimal, mintId } from '@workspace-wallet/contract'
import { beginAccessChange, markKeysChanged } from '../access/revision.ts'
import { recordAction } from '../audit/chain/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { replaceRow } from '../database/row-signer.ts'
import { Ledger } from '../ledger/posting/entities.ts'
import { Wallet } from '../wallets/entities.ts'
import { Member, Workspace } from './entities.ts'

/** A workspace with an empty ledger. */
export async function createWorkspace(em: Em, actor: string, name: string): Promise<{ workspaceId: string }> {
  const workspaceId = mintId('workspace')
  const now = await databaseTime(em)
  em.create(Workspace, { id: workspaceId, name, createdAt: now, updatedAt: now })
  em.create(Ledger, { workspaceId, status: 'OPEN', walletCount: 0, orderCount: 0, lastPostedAt: now })
  recordAction(em, { actor, action: 'workspace.create', workspaceId, target: workspaceId, after: { name } })
  await em.flush()
  return { workspaceId }
}

/**
 * Deletes a workspace softly: its keys stop, its ledger takes no more postings, its history stays.
 *
 * @throws AdminError WORKSPACE_HOLDS_MONEY while a wallet holds money, unless forced
 */
export async function deleteWorkspace(em: Em, actor: string, workspaceId: string, force: boolean): Promise<void> {
  const { accessRevision, now } = await beginAccessChange(em)
  const ledger = await em.findOne(Ledger, { workspaceId }, { lockMode: LockMode.PESSIMISTIC_WRITE })
  const workspace = await findWorkspace(em, workspaceId)
  const holding = await em.find(Wallet, { workspaceId, kind: 'CUSTOMER', balance: { $gt: new Decimal(0) } })
  if (holding.length > 0 && !force)
    throw new AdminError(
      'WORKSPACE_HOLDS_MONEY',
      `${holding.length} wallet(s) of ${workspaceId} hold money: withdraw it first, or give --force.`,
    )
  workspace.deletedAt = workspace.updatedAt = now
  ledger!.status = 'CLOSED'
  // Whatever stood in them: nothing is built on what is deleted.
  replaceRow(workspace)
  replaceRow(ledger!)
  const walletsWithMoney = holding.map(wallet => wallet.id)
  recordAction(em, {
    actor,
    action: 'workspace.delete',
    workspaceId,
    target: workspaceId,
    after: { force, walletsWithMoney },
  })
  await em.flush()
  await markKeysChanged(em, { workspaceId }, accessRevision)
}

export async function addMember(em: Em, actor: string, workspaceId: string, userId: string): Promise<void> {
  // Of two who add one user at once, the second waits here and then finds the member.
  const { accessRevision, now } = await beginAccessChange(em)
  await findWorkspace(em, workspaceId)
  const member = await em.findOne(Member, { workspaceId, userId })
  if (member && !member.removedAt)
    throw new AdminError('ALREADY_EXISTS', `${userId} is a member of ${workspaceId} already.`)
  if (member) {
    replaceRow(member)
    em.assign(member, { createdAt: now, removedAt: null })
  } else em.create(Member, { workspaceId, userId, createdAt: now })
  recordAction(em, { actor, action: 'member.add', workspaceId, target: userId })
  await em.flush()
  await markKeysChanged(em, { workspaceId, ownerUserId: userId }, accessRevision)
}

/** From now on the member's keys get GA2034. */
export async function removeMember(em: Em, actor: string, workspaceId: string, userId: string): Promise<void> {
  const { accessRevision, now } = await beginAccessChange(em)
  const member = await em.findOne(Member, { workspaceId, userId, removedAt: null })
  if (!member) throw new AdminError('NOT_FOUND', `${userId} is no member of ${workspaceId}.`)
  replaceRow(member)
  member.removedAt = now
  recordAction(em, { actor, action: 'member.remove', workspaceId, target: userId })
  await em.flush()
  await markKeysChanged(em, { workspaceId, ownerUserId: userId }, accessRevision)
}

/** @throws AdminError NOT_FOUND when there is none, or it was deleted */
export async function findWorkspace(em: Em, workspaceId: string): Promise<Workspace> {
  const workspace = await em.findOne(Workspace, { id: workspaceId, deletedAt: null })
  if (!workspace) throw new AdminError('NOT_FOUND', `There is no workspace ${workspaceId}.`)
  return workspace
}
