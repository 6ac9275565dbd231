import type { KeyObject } from 'node:crypto'
import { defineEntity } from '@mikro-orm/core'
import type { SignedEntity } from '../database/row-signer.ts'
import { memberColumns, memberMac } from '../database/tables/member.ts'
import { propertiesOf } from '../database/tables/properties.ts'
import { rowOfEntity } from '../database/tables/table.ts'
import { workspaceColumns, workspaceMac } from '../database/tables/workspace.ts'
import { signature } from '../database/types.ts'

const WorkspaceSchema = defineEntity({
  name: 'Workspace',
  tableName: 'workspace',
  properties: { ...propertiesOf(workspaceColumns), ...signature() },
})
export class Workspace extends WorkspaceSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return workspaceMac(chainKey, rowOfEntity(workspaceColumns, this))
  }
}
WorkspaceSchema.setClass(Workspace)

const MemberSchema = defineEntity({
  name: 'Member',
  tableName: 'member',
  properties: { ...propertiesOf(memberColumns), ...signature() },
})
export class Member extends MemberSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return memberMac(chainKey, rowOfEntity(memberColumns, this))
  }
}
MemberSchema.setClass(Member)
