import { defineEntity, p } from '@mikro-orm/core'
import { PublicId, signature } from '../database/types.ts'

const WorkspaceSchema = defineEntity({
  name: 'Workspace',
  tableName: 'workspace',
  properties: {
    id: p.type(new PublicId('workspace')).primary(),
    name: p.text(),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
    deletedAt: p.datetime(3).nullable(),
    ...signature(),
  },
})
export class Workspace extends WorkspaceSchema.class {}
WorkspaceSchema.setClass(Workspace)

const MemberSchema = defineEntity({
  name: 'Member',
  tableName: 'member',
  properties: {
    workspaceId: p.type(new PublicId('workspace')).primary(),
    userId: p.text().primary(),
    createdAt: p.datetime(3),
    removedAt: p.datetime(3).nullable(),
    ...signature(),
  },
})
export class Member extends MemberSchema.class {}
MemberSchema.setClass(Member)
