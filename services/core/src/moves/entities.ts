import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import type { SignedEntity } from '../database/row-signer.ts'
import { propertiesOf } from '../database/tables/properties.ts'
import { rowOfEntity } from '../database/tables/table.ts'
import { workspaceMoveColumns, workspaceMoveMac } from '../database/tables/workspace-move.ts'
import { signature } from '../database/types.ts'

/** The last move of a workspace to a place or away from it. */
const WorkspaceMoveSchema = defineEntity({
  name: 'WorkspaceMove',
  tableName: 'workspace_move',
  properties: { ...propertiesOf(workspaceMoveColumns), accessRevision: p.bigint('number'), ...signature() },
})
export class WorkspaceMove extends WorkspaceMoveSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return workspaceMoveMac(chainKey, rowOfEntity(workspaceMoveColumns, this))
  }
}
WorkspaceMoveSchema.setClass(WorkspaceMove)
