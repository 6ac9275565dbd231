import { defineEntity } from '@mikro-orm/core'
import { propertiesOf } from '../database/tables/properties.ts'
import { entryColumns, transferColumns } from '../database/tables/transfer.ts'

const { workspaceId, transferId: id, ...columns } = transferColumns

/** Written by functions of the database, and read in SQL where it matters: see ledger/store and queries.ts. */
const TransferSchema = defineEntity({
  name: 'Transfer',
  tableName: 'transfer',
  properties: propertiesOf({ workspaceId, id, ...columns, ...entryColumns }),
})
export class Transfer extends TransferSchema.class {}
TransferSchema.setClass(Transfer)
