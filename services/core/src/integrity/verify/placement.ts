import { type Check, runChecks, workspaceIds } from './checks.ts'
import type { Scope } from './scope.ts'

/** Checks that each workspace was created in this place, or has moved here. Its rows are as genuine where somebody has copied them to. */
export function checkPlacement({ snapshot, place, workspaceId, findings }: Scope): Promise<void> {
  return runChecks(snapshot, workspaceId, findings, [createdIn(place)])
}

const createdIn = (place: number): Check => ({
  rule: 'workspace-place',
  sql: `
    select w.id, w.created_in
    from {here}.workspace w left join {schema}.workspace_move m on m.workspace_id = w.id
      and (m.state = 'PRESENT' and m.to_place = ${place} or m.state = 'LEAVING' and m.from_place = ${place})
    where ($1::uuid is null or w.id = $1) and w.created_in <> ${place} and m.workspace_id is null
    order by w.id`,
  violation: ([workspace, createdIn]) => ({
    message: `it was created in place ${createdIn}, and has not moved to place ${place}`,
    ids: workspaceIds(workspace),
  }),
})
