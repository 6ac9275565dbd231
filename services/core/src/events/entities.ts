import { defineEntity, p } from '@mikro-orm/core'
import { journalColumns } from '../database/tables/journal.ts'
import { propertiesOf } from '../database/tables/properties.ts'

/** The events of a workspace that are not transfers. Written and read in SQL only. */
const JournalSchema = defineEntity({
  name: 'Journal',
  tableName: 'journal',
  properties: { ...propertiesOf(journalColumns), mac: p.blob() },
})
export class Journal extends JournalSchema.class {}
JournalSchema.setClass(Journal)
