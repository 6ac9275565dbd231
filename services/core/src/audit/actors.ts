import type { WalletChanger } from '@workspace-wallet/contract'

// Who acts, as transfers and the audit record it: `key:ak_…` for an API key, `role:name` for a service token, or `core`.

/** Core itself, when nobody has asked for what it does. */
export const coreActor = 'core'

export function actorOfKey(apiKey: string): string {
  return `key:${apiKey}`
}

/** Whether an actor is an API key. */
export function isKey(actor: string): boolean {
  return actor.startsWith('key:')
}

/** Which side an actor is on: operators, or the workspace, whose API keys and services are all other actors. */
export function changerOf(actor: string): WalletChanger {
  return actor.startsWith('admin:') ? 'OPERATOR' : 'WORKSPACE'
}
