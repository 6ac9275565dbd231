import type { KeyObject } from 'node:crypto'
import { LockMode } from '@mikro-orm/core'
import { AdminError, type Id, type Move, uuidFromId } from '@workspace-wallet/contract'
import { beginAccessChange, lockAccess, markKeysChanged } from '../access/revision.ts'
import { recordAction, writeActions } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, replaceRow, requireGenuine } from '../database/row-signer.ts'
import { runIn } from '../database/run.ts'
import type { Queryable } from '../database/statement.ts'
import type { LedgerRow } from '../database/tables/ledger.ts'
import type { WorkspaceMoveRow } from '../database/tables/workspace-move.ts'
import type { Ledger } from '../ledger/rows/entities.ts'
import { changeLedgerStatus } from '../ledger/rows/functions.ts'
import { lockAnyLedger } from '../ledger/rows/lock.ts'
import { WorkspaceMove } from './entities.ts'
import { hasArrived, lockUnauditedRows } from './queries.ts'

// A workspace moves in steps, each of which is one transaction in one place. Core writes which place has the workspace; the owner of
// the tables copies the rows and removes them (cli/admin/move), because the role of the service may not write them.
//
// - ARRIVING, in the place where it goes: from now on, rows of the workspace there are not used.
// - LEAVING, in the place where it is: its ledger is MOVING. Nothing of it changes any more, and reads still find it there.
// - PRESENT, in the place where it goes. This transaction decides: before it, the workspace can stay; after it, it has moved.
// - LEFT, in the place where it was: rows of the workspace there are not used, and can be removed. Its ledger remains, and stays MOVING.

const dayMs = 86_400_000

type Change = Pick<WorkspaceMoveRow, 'generation' | 'state' | 'fromPlace' | 'toPlace'>
type By = { actor: string; chainKey: KeyObject }
type Step = Pick<Move, 'generation' | 'from' | 'to'> & { workspaceId: Id<'workspace'> }

const rowOf = ({ generation, from, to }: Step, state: Change['state']): Change => ({
  generation,
  state,
  fromPlace: from,
  toPlace: to,
})

/** Marks the workspace as arriving, in the place where it goes. */
export async function beginArrival(em: Em, { actor }: Pick<By, 'actor'>, step: Step): Promise<void> {
  await lockAccess(em)
  await writeMove(em, step.workspaceId, rowOf(step, 'ARRIVING'), null)
  record(em, { actor, action: 'workspace.move', workspaceId: null }, step)
}

/**
 * Stops the workspace, in the place where it is. Transactions that have begun to change it end first. `confirmStop` follows.
 *
 * @throws AdminError NOT_ALLOWED unless its ledger is open and genuine
 */
export async function stop(em: Em, { actor, chainKey }: By, step: Step, reason: Reason): Promise<void> {
  const { workspaceId } = step
  const { accessRevision } = await beginAccessChange(em)
  const ledger = requireMovable(await lockAnyLedger(em, workspaceId), workspaceId)
  await lockUnauditedRows(runIn(em), uuidFromId('workspace', workspaceId))
  await markKeysChanged(em, { workspaceId }, accessRevision)
  const unconfirmed = { aheadMs: dayMs }
  await writeMove(em, workspaceId, rowOf(step, 'LEAVING'), accessRevision, unconfirmed)
  record(em, { actor, action: 'workspace.leave', workspaceId }, step)
  // Before the ledger says that it moves: from then on, nobody can lock this audit.
  await writeActions(em, chainKey, reason)
  await setLedgerStatus(em, chainKey, ledger, 'MOVING')
}

/**
 * Records the time from which the workspace is stopped. A transaction of its own, because the commit of `stop` may take any time: until
 * then, the recorded time is in the future, and the workspace may not arrive.
 */
export async function confirmStop(em: Em, step: Step): Promise<void> {
  await lockAccess(em)
  await writeMove(em, step.workspaceId, rowOf(step, 'LEAVING'), null)
}

/** Of the audit entry. */
type Reason = Parameters<typeof writeActions>[2]

/** Lets the workspace go on where it has arrived. @throws AdminError NOT_ALLOWED if it is no longer arriving */
export async function arrive(em: Em, { actor, chainKey }: By, step: Step): Promise<void> {
  const { workspaceId } = step
  const { accessRevision } = await beginAccessChange(em)
  requireStateOf(await lockMove(em, workspaceId), step, 'ARRIVING')
  await writeMove(em, workspaceId, rowOf(step, 'PRESENT'), accessRevision)
  await open(em, chainKey, workspaceId)
  await markKeysChanged(em, { workspaceId }, accessRevision)
  record(em, { actor, action: 'workspace.arrive', workspaceId }, step)
}

/** Gives the rows up where the workspace was. */
export async function leave(em: Em, { actor }: Pick<By, 'actor'>, step: Step): Promise<void> {
  const { accessRevision } = await beginAccessChange(em)
  await writeMove(em, step.workspaceId, rowOf(step, 'LEFT'), accessRevision)
  record(em, { actor, action: 'workspace.leave', workspaceId: null }, step)
}

/**
 * Gives up the copy in the place where the workspace was to go: a move back, with the next generation. If somebody has modified the row of
 * the move there, the audit says whether the workspace has arrived: the role of the service can remove nothing from it.
 *
 * @throws AdminError NOT_ALLOWED if it is no longer arriving
 */
export async function giveUpArrival(
  em: Em,
  { actor, chainKey, reads }: By & { reads: Queryable },
  step: Step,
  back: Step,
): Promise<void> {
  const { workspaceId, generation } = step
  const { accessRevision } = await beginAccessChange(em)
  const row = await lockMove(em, workspaceId)
  // After the lock, which the transaction that lets it arrive holds as well.
  const isKnown = row !== null && isGenuine(row) && row.generation >= generation
  if (isKnown) requireStateOf(row, step, 'ARRIVING')
  else if (await hasArrived(reads, chainKey, { workspaceId: uuidFromId('workspace', workspaceId), generation }))
    throw new AdminError(
      'NOT_ALLOWED',
      `${workspaceId} has arrived, and the row of its move was modified there afterwards: run ledger verify.`,
    )
  await writeMove(em, workspaceId, rowOf(back, 'LEFT'), accessRevision)
  record(em, { actor, action: 'workspace.stay', workspaceId: null }, back)
}

/** Lets the workspace go on where it has stayed. */
export async function stay(em: Em, { actor, chainKey }: By, back: Step): Promise<void> {
  const { workspaceId } = back
  const { accessRevision } = await beginAccessChange(em)
  const ledger = await lockAnyLedger(em, workspaceId)
  if (ledger?.status === 'MOVING') await setLedgerStatus(em, chainKey, requireGenuineLedger(ledger), 'OPEN')
  await writeMove(em, workspaceId, rowOf(back, 'PRESENT'), accessRevision)
  await markKeysChanged(em, { workspaceId }, accessRevision)
  record(em, { actor, action: 'workspace.stay', workspaceId }, back)
}

/** @throws AdminError NOT_ALLOWED */
function requireMovable(ledger: Ledger | null, workspaceId: string): Ledger {
  requireMovableStatus(ledger?.status ?? null, workspaceId)
  return requireGenuineLedger(ledger!)
}

/** @throws AdminError NOT_ALLOWED */
export function requireMovableStatus(status: LedgerRow['status'] | null, workspaceId: string): void {
  if (status !== 'OPEN')
    throw new AdminError('NOT_ALLOWED', `${workspaceId} cannot move: ${reasonOf[status ?? 'CLOSED']}.`)
}

const reasonOf = {
  CLOSED: 'it is deleted',
  HALTED: 'it is halted, because rows were modified outside the service: run ledger repair or ledger reopen first',
  MOVING: 'it is stopped by another move',
}

function requireGenuineLedger(ledger: Ledger): Ledger {
  requireGenuine(ledger)
  return ledger
}

async function open(em: Em, chainKey: KeyObject, workspaceId: Id<'workspace'>): Promise<void> {
  const ledger = await lockAnyLedger(em, workspaceId)
  if (ledger?.status !== 'MOVING')
    throw new AdminError('NOT_ALLOWED', `The ledger of ${workspaceId} is not there: run the command again.`)
  await setLedgerStatus(em, chainKey, requireGenuineLedger(ledger), 'OPEN')
}

async function setLedgerStatus(em: Em, chainKey: KeyObject, ledger: Ledger, status: 'OPEN' | 'MOVING'): Promise<void> {
  const { row, mac } = ledger
  await changeLedgerStatus(runIn(em), chainKey, { ...row, mac }, { status, haltReason: null }, true)
}

/** Locks the row, so that of two operators only one continues or cancels the move. */
function lockMove(em: Em, workspaceId: Id<'workspace'>): Promise<WorkspaceMove | null> {
  return em.findOne(WorkspaceMove, { workspaceId }, { lockMode: LockMode.PESSIMISTIC_WRITE })
}

/** @throws AdminError NOT_ALLOWED */
function requireStateOf(
  row: WorkspaceMove | null,
  { workspaceId, generation }: Step,
  state: WorkspaceMoveRow['state'],
): void {
  if (!row || !isGenuine(row))
    throw new AdminError(
      'NOT_ALLOWED',
      `The row of the move of ${workspaceId} was modified outside the service: cancel the move, and begin it again.`,
    )
  if (row.state !== state || row.generation !== generation)
    throw new AdminError(
      'NOT_ALLOWED',
      `The move of ${workspaceId} was continued or canceled by another call: look again.`,
    )
}

async function writeMove(
  em: Em,
  workspaceId: Id<'workspace'>,
  change: Change,
  accessRevision: number | null,
  { aheadMs = 0 }: { aheadMs?: number } = {},
): Promise<void> {
  const at = new Date((await databaseTime(em)).getTime() + aheadMs)
  const existing = await em.findOne(WorkspaceMove, { workspaceId })
  if (existing) {
    if (isGenuine(existing) && existing.generation > change.generation)
      throw new AdminError('NOT_ALLOWED', `${workspaceId} moves again already: look again.`)
    // A row that core did not write counts for nothing, and is replaced.
    replaceRow(existing)
    em.assign(existing, { ...change, at, ...(accessRevision !== null && { accessRevision }) })
  } else em.create(WorkspaceMove, { workspaceId, ...change, at, accessRevision: accessRevision ?? 0 })
  await em.flush()
}

function record(
  em: Em,
  action: Pick<Parameters<typeof recordAction>[1], 'actor' | 'action' | 'workspaceId'>,
  { workspaceId, generation, from, to }: Step,
): void {
  recordAction(em, { ...action, target: workspaceId, after: { generation, from, to } })
}
