import { defineEntity, p } from '@mikro-orm/core'

/** An uploaded part of a checkpoint, for a verification. */
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
