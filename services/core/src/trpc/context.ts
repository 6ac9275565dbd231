import type { Core } from '../compose.ts'
import type { ServiceToken } from '../config.ts'

/** What every procedure is called with: core's parts, and the service token that the caller presented. */
export type Context = { core: Core; token: Pick<ServiceToken, 'name' | 'role'> }

/** What the base procedures make of it. `actor` is who acts, as it is written into transfers and the audit. */
export type CallContext = Context & { actor: string }
