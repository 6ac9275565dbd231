import { isId, type TransferName } from '@workspace-wallet/contract'
import { apiKeyOf } from '../audit/actors.ts'
import type { Asker, Place, Places } from '../places/places.ts'
import { requireOneOf } from './transfers.ts'

/** `core`: the place of the workspace that the input names, otherwise home. */
type Context<Each extends Place> = { core: Each; places: Places<Each>; token: Asker }

/**
 * The place of a transfer, deposit or withdrawal; `core` if no place has it.
 *
 * @throws DomainError as `requireOneOf`; the error of a place that did not answer
 */
export async function placeOfTransfer<Each extends Place>(
  { core, places, token }: Context<Each>,
  { workspaceId, name }: TransferName,
): Promise<Each> {
  if (workspaceId !== undefined || !isId('transfer', name)) return core
  return requireOneOf(await places.ofTransfer(name, token)) ?? core
}

type Search = { workspaceId?: string | undefined; walletId?: string | undefined; actor?: string | undefined }

/** The places that a search reads: one if it names a workspace, wallet or API key, otherwise all. @throws as `Places.of` */
export async function placesOfTransfers<Each extends Place>(
  { core, places, token }: Context<Each>,
  { workspaceId, walletId, actor }: Search,
): Promise<readonly Each[]> {
  if (workspaceId !== undefined) return [core]
  if (walletId !== undefined) return [await places.of('wallet', walletId, token)]
  // A key makes transfers in its own workspace only.
  const apiKey = actor === undefined ? null : apiKeyOf(actor)
  return apiKey === null ? places.all : [await places.of('apiKey', apiKey, token)]
}
