import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { uuidFromId } from '@workspace-wallet/contract'
import type { SignedEntity } from '../database/row-signer.ts'
import { memberMac, workspaceMac } from '../database/signed-rows.ts'
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
export class Workspace extends WorkspaceSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return workspaceMac(chainKey, {
      ...this,
      id: uuidFromId('workspace', this.id),
      deletedAt: this.deletedAt ?? null,
    })
  }
}
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
export class Member extends MemberSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return memberMac(chainKey, {
      ...this,
      workspaceId: uuidFromId('workspace', this.workspaceId),
      removedAt: this.removedAt ?? null,
    })
  }
}
MemberSchema.setClass(Member)
