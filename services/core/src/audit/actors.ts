import type { WalletChanger } from '@workspace-wallet/contract'

// Who acts, as transfers and the audit record it: `key:ak_…` for an API key, `operator:name` for an operator, `role:name` for a
// service token, or `core`. No role of service tokens is called `operator` or `key`.

/** Core itself, when nobody has asked for what it does. */
export const coreActor = 'core'

export function actorOfKey(apiKey: string): string {
  return `key:${apiKey}`
}

export function actorOfOperator(name: string): string {
  return `operator:${name}`
}

/** The API key that an actor is; null for all others. */
export function apiKeyOf(actor: string): string | null {
  return isKey(actor) ? actor.slice('key:'.length) : null
}

/** Whether an actor is an API key. */
export function isKey(actor: string): boolean {
  return actor.startsWith('key:')
}

/** Which side an actor is on: operators, or the workspace, whose API keys and services are all other actors. */
export function changerOf(actor: string): WalletChanger {
  return actor.startsWith('admin:') || actor.startsWith('operator:') ? 'OPERATOR' : 'WORKSPACE'
}
