import { defineEntity } from '@mikro-orm/core'
import { holdColumns } from '../database/tables/hold.ts'
import { propertiesOf } from '../database/tables/properties.ts'
import { signature } from '../database/types.ts'

/** Written and read in SQL only: see ledger/store and queries.ts. */
const HoldSchema = defineEntity({
  name: 'Hold',
  tableName: 'hold',
  properties: { ...propertiesOf(holdColumns), ...signature() },
})
export class Hold extends HoldSchema.class {}
HoldSchema.setClass(Hold)
