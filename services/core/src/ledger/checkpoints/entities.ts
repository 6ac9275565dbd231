import { defineEntity, p } from '@mikro-orm/core'

/** A part of a checkpoint that the ledger is verified against. */
const CheckpointPartSchema = defineEntity({
  name: 'CheckpointPart',
  tableName: 'checkpoint_part',
  properties: {
    uploadId: p.uuid().primary(),
    part: p.integer().primary(),
    content: p.text(),
    uploadedAt: p.datetime(3),
  },
})
export class CheckpointPart extends CheckpointPartSchema.class {}
CheckpointPartSchema.setClass(CheckpointPart)
