/** The demo workspaces that the first start creates, and demo.json, which describes the first of them. */
import { isDeepStrictEqual } from 'node:util'
import { scopes } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { createMarketplace } from './marketplace.ts'
import { readJson, writePrivateJson } from './private-file.ts'

export interface Demo {
  baseUrl: string
  coreUrl: string
  consoleUrl: string
  /** The service token of an operator. */
  adminToken: string
  workspaceId: string
  apiKey: string
  apiSecret: string
  wallets: { walletId: string; name: string; currency: string; balance: string }[]
}

type Addresses = Pick<Demo, 'baseUrl' | 'coreUrl' | 'consoleUrl'>
/** `serviceToken` makes the transfers of the marketplace. */
export type Tokens = { adminToken: string; serviceToken: string }
type Known = keyof Addresses | 'adminToken'

const walletPlans = [
  { name: 'Main', currency: 'USD', balance: '1000.00' },
  { name: 'Savings', currency: 'USD', balance: '250.00' },
  { name: 'Travel', currency: 'EUR', balance: '500.00' },
]

/**
 * Reads the demo from its file, or creates it. The file is written last: if a start is interrupted before that, the next
 * one creates a new workspace, and the unfinished one stays unused.
 */
export async function ensureDemo(
  path: string,
  { baseUrl, coreUrl, consoleUrl }: Addresses,
  tokens: Tokens,
): Promise<{ demo: Demo; isNew: boolean }> {
  const known = (await readJson(path)) as Demo | undefined
  const current = { baseUrl, coreUrl, consoleUrl, adminToken: tokens.adminToken }
  // These go first in the file, and override those of an earlier start.
  const demo = { ...current, ...(known ?? (await createDemo(coreUrl, tokens))), ...current }
  if (!isDeepStrictEqual(known, demo)) await writePrivateJson(path, demo)
  return { demo, isNew: known === undefined }
}

async function createDemo(coreUrl: string, tokens: Tokens): Promise<Omit<Demo, Known>> {
  const core = createCoreClient({ url: coreUrl, token: tokens.adminToken })
  try {
    const [demo] = await Promise.all([createDemoWorkspace(core), createMarketplace(coreUrl, tokens)])
    return demo
  } catch (error) {
    throw new Error(`Cannot create the demo workspaces: ${(error as Error).message}`, { cause: error })
  } finally {
    await core.close()
  }
}

/** Creates the first of the demo workspaces: wallets with money in them, and a key with every scope. */
export async function createDemoWorkspace(core: CoreClient): Promise<Omit<Demo, Known>> {
  const { workspaceId } = await core.workspaces.create.mutate({ name: 'Demo' })
  const userId = 'demo'
  await core.members.add.mutate({ workspaceId, userId })
  const wallets: Demo['wallets'] = []
  for (const plan of walletPlans) {
    const { name, currency, balance } = plan
    const { walletId } = await core.wallets.create.mutate({ workspaceId, currency, name })
    const bizId = `demo-${name.toLowerCase()}`
    await core.wallets.deposit.mutate({ workspaceId, walletId, amount: balance, bizId, caller: { requestId: bizId } })
    wallets.push({ walletId, ...plan })
  }
  const { apiKey, apiSecret } = await core.apiKeys.create.mutate({
    workspaceId,
    ownerUserId: userId,
    name: 'Demo',
    scopes: [...scopes],
  })
  return { workspaceId, apiKey, apiSecret, wallets }
}
