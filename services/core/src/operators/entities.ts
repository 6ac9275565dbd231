import type { KeyObject } from 'node:crypto'
import { defineEntity } from '@mikro-orm/core'
import type { SignedEntity } from '../database/row-signer.ts'
import { operatorColumns, operatorMac } from '../database/tables/operator.ts'
import { propertiesOf } from '../database/tables/properties.ts'
import { rowOfEntity } from '../database/tables/table.ts'
import { signature } from '../database/types.ts'

const OperatorSchema = defineEntity({
  name: 'Operator',
  tableName: 'operator',
  properties: { ...propertiesOf(operatorColumns), ...signature() },
})
export class Operator extends OperatorSchema.class implements SignedEntity {
  macUnder(chainKey: KeyObject): Buffer {
    return operatorMac(chainKey, rowOfEntity(operatorColumns, this))
  }
}
OperatorSchema.setClass(Operator)
