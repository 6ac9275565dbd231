import { randomUUID } from 'node:crypto'

/** What the input of a call on a workspace begins with. Each call has a request ID of its own in the log of core. */
export function onWorkspace(workspaceId: string) {
  return { workspaceId, caller: { requestId: randomUUID() } }
}
