import { randomUUID } from 'node:crypto'
import { scopes as allScopes } from '@workspace-wallet/contract'
import { retryUnavailable } from '../../cli/processes/retry.ts'
import type { Credentials } from './client.ts'
import type { System } from './system.ts'

type Admin = Pick<System, 'admin'>
type KeyInput = Parameters<System['admin']['apiKeys']['create']['mutate']>[0]
type KeyOptions = Partial<Pick<KeyInput, 'scopes' | 'ipAllowlist' | 'expiresAt' | 'name'>>

/** A workspace with one member, `owner`. */
export async function createWorkspace({ admin }: Admin, name = 'Test'): Promise<string> {
  const { workspaceId } = await retryUnavailable(() => admin.workspaces.create.mutate({ name }))
  await retryUnavailable(() => admin.members.add.mutate({ workspaceId, userId: 'owner' }))
  return workspaceId
}

/** A key of the member `owner`, by default with all scopes. */
export async function createKey(
  { admin, workspaceId, baseUrl }: Pick<System, 'admin' | 'workspaceId' | 'baseUrl'>,
  options: KeyOptions = {},
): Promise<Credentials & { workspaceId: string }> {
  const scopes: KeyInput['scopes'] = [...allScopes]
  const issued = await retryUnavailable(() =>
    admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'owner', scopes, ...options }),
  )
  return { baseUrl, workspaceId, ...issued }
}

/** A key in a workspace of its own. */
export async function createTenant(
  { admin, baseUrl }: Pick<System, 'admin' | 'baseUrl'>,
  options: KeyOptions = {},
): Promise<Credentials & { workspaceId: string }> {
  return createKey({ admin, baseUrl, workspaceId: await createWorkspace({ admin }) }, options)
}

/** A wallet with these deposits in it. Returns its ID. */
export async function createWallet(
  { admin, workspaceId }: Pick<System, 'admin' | 'workspaceId'>,
  { currency = 'USD', name = 'Test', deposits = [] }: { currency?: string; name?: string; deposits?: string[] } = {},
): Promise<string> {
  const { walletId } = await retryUnavailable(() => admin.wallets.create.mutate({ workspaceId, currency, name }))
  for (const amount of deposits)
    await retryUnavailable(() => admin.wallets.deposit.mutate({ workspaceId, walletId, amount, bizId: randomUUID() }))
  return walletId
}
