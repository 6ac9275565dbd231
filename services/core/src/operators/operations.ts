import {
  AdminError,
  type IssuedOperator,
  type NewOperator,
  type OperatorListing,
  type OperatorPage,
  type OperatorRotation,
} from '@workspace-wallet/contract'
import { lockAccess } from '../access/revision.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine, replaceRow, requireGenuine } from '../database/row-signer.ts'
import { Operator } from './entities.ts'
import { hashOfToken, mintOperatorToken } from './tokens.ts'

/**
 * Creates an operator, or a disabled one again. Only the result contains the token.
 *
 * @throws AdminError ALREADY_EXISTS; NOT_ALLOWED for an expiry in the past
 */
export async function createOperator(
  em: Em,
  checksumKey: string,
  actor: string,
  { name, role, ...given }: NewOperator,
): Promise<IssuedOperator> {
  const now = await beginChange(em)
  const expiresAt = given.expiresAt ?? null
  checkExpiry(expiresAt, now)
  const existing = await em.findOne(Operator, { name })
  // A row that was written outside the service is nobody's, and does not keep the name from an operator.
  if (existing?.status === 'ACTIVE' && isGenuine(existing))
    throw new AdminError(
      'ALREADY_EXISTS',
      `There is an operator ${name} already: give another name, or rotate the token.`,
    )
  const token = mintOperatorToken(checksumKey)
  const fields = {
    role,
    status: 'ACTIVE',
    tokenHash: hashOfToken(token),
    expiresAt,
    createdAt: now,
    updatedAt: now,
  } as const
  const before = existing ? auditView(existing) : undefined
  if (existing) {
    replaceRow(existing)
    em.assign(existing, { ...fields, tokenVersion: versionAfter(existing) })
  }
  const operator = existing ?? em.create(Operator, { name, ...fields, tokenVersion: 1 })
  await record(em, actor, 'operator.create', operator, before)
  return { name, token, expiresAt }
}

/**
 * Gives an operator a new token. The old one is refused from now on.
 *
 * @throws AdminError NOT_FOUND; NOT_ALLOWED for an expiry in the past, and if the operator is disabled
 */
export async function rotateOperator(
  em: Em,
  checksumKey: string,
  actor: string,
  { name, expiresAt }: OperatorRotation,
): Promise<IssuedOperator> {
  const now = await beginChange(em)
  const operator = await findExisting(em, name)
  requireGenuine(operator)
  if (operator.status !== 'ACTIVE')
    throw new AdminError('NOT_ALLOWED', `The operator ${name} is disabled: create the operator again.`)
  const before = auditView(operator)
  if (expiresAt !== undefined) operator.expiresAt = expiresAt
  checkExpiry(operator.expiresAt ?? null, now)
  const token = mintOperatorToken(checksumKey)
  operator.tokenHash = hashOfToken(token)
  operator.tokenVersion = versionAfter(operator)
  operator.updatedAt = now
  await record(em, actor, 'operator.rotate', operator, before)
  return { name, token, expiresAt: operator.expiresAt ?? null }
}

/** Disables an operator, whose token is refused from now on. @throws AdminError NOT_FOUND */
export async function disableOperator(em: Em, actor: string, name: string): Promise<void> {
  const now = await beginChange(em)
  const operator = await findExisting(em, name)
  const before = auditView(operator)
  // A row that was modified outside the service can be disabled too: nothing else in it has an effect then.
  replaceRow(operator)
  operator.status = 'DISABLED'
  operator.updatedAt = now
  await record(em, actor, 'operator.disable', operator, before)
}

/** A page of the operators in the order of their names, disabled ones included. */
export async function listOperators(em: Em, { after, limit }: OperatorListing): Promise<OperatorPage> {
  const where = after === undefined ? {} : { name: { $gt: after } }
  const found = await em.find(Operator, where, { orderBy: { name: 'asc' }, limit: limit + 1 })
  const operators = found.slice(0, limit).map(operator => {
    const { name, role, status, expiresAt = null, createdAt, updatedAt } = operator
    return { name, role, status, expiresAt, createdAt, updatedAt, isModified: !isGenuine(operator) }
  })
  return { operators, next: found.length > limit ? operators.at(-1)!.name : null }
}

/** The largest integer of PostgreSQL, which somebody may have written: the version then stays there. */
const lastVersion = 2 ** 31 - 1

function versionAfter({ tokenVersion }: Operator): number {
  return Math.min(tokenVersion + 1, lastVersion)
}

/** Waits for other changes of operators. Returns the time after that. */
async function beginChange(em: Em): Promise<Date> {
  await lockAccess(em)
  return databaseTime(em)
}

/** @throws AdminError NOT_FOUND */
async function findExisting(em: Em, name: string): Promise<Operator> {
  const operator = await em.findOne(Operator, { name })
  if (!operator) throw new AdminError('NOT_FOUND', `There is no operator ${name}.`)
  return operator
}

/** @throws AdminError NOT_ALLOWED */
function checkExpiry(expiresAt: Date | null, now: Date): void {
  if (expiresAt && expiresAt <= now)
    throw new AdminError('NOT_ALLOWED', 'The expiry is in the past: give a later time.')
}

async function record(
  em: Em,
  actor: string,
  action: 'operator.create' | 'operator.disable' | 'operator.rotate',
  operator: Operator,
  before: ReturnType<typeof auditView> | undefined,
): Promise<void> {
  recordAction(em, { actor, action, workspaceId: null, target: operator.name, before, after: auditView(operator) })
  await em.flush()
}

/** The state of an operator in the audit. The verification compares it with the row (integrity/verify/audited-rows.ts). */
function auditView({ role, status, tokenVersion, expiresAt = null }: Operator) {
  return { role, status, tokenVersion, expiresAt }
}
