import type { KeyObject } from 'node:crypto'
import { defineEntity, p } from '@mikro-orm/core'
import { operatorRoles, operatorStatuses } from '@workspace-wallet/contract'
import type { SignedEntity } from '../database/row-signer.ts'
import { operatorMac } from '../database/signed-rows.ts'
import { signature } from '../database/types.ts'

const OperatorSchema = defineEntity({
  name: 'Operator',
  tableName: 'operator',
  properties: {
    name: p.text().primary(),
    role: p.enum(operatorRoles),
    status: p.enum(operatorStatuses),
    tokenHash: p.blob(),
    tokenVersion: p.integer(),
    expiresAt: p.datetime(3).nullable(),
    createdAt: p.datetime(3),
    updatedAt: p.datetime(3),
    ...signature(),
  },
})
export class Operator extends OperatorSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return operatorMac(chainKey, { ...this, expiresAt: this.expiresAt ?? null })
  }
}
OperatorSchema.setClass(Operator)
