import { defineEntity, p } from '@mikro-orm/core'

/** The fingerprint of this ledger's chain key (see chain-key.ts). */
const ChainKeySchema = defineEntity({
  name: 'ChainKey',
  tableName: 'chain_key',
  properties: {
    singleton: p.boolean().primary(),
    fingerprint: p.blob(),
  },
})
export class ChainKey extends ChainKeySchema.class {}
ChainKeySchema.setClass(ChainKey)
