import { p, Type } from '@mikro-orm/core'
import { Decimal, type IdKind, idFromUuid, uuidFromId } from '@workspace-wallet/contract'

/** No ID has this UUID. */
const nilUuid = '00000000-0000-0000-0000-000000000000'

/** A public ID (`wal_…`) in the entity, its UUID in the database. A malformed ID matches no row. */
export class PublicId extends Type<string, string> {
  readonly kind: IdKind

  constructor(kind: IdKind) {
    super()
    this.kind = kind
  }

  override convertToDatabaseValue(id: string): string {
    return typeof id === 'string' ? (uuidFromId(this.kind, id) ?? nilUuid) : id
  }

  override convertToJSValue(uuid: string): string {
    return uuid ? idFromUuid(this.kind, uuid) : uuid
  }

  override getColumnType(): string {
    return 'uuid'
  }
}

/** An exact decimal. MikroORM's own type compares as JavaScript numbers and misses small changes. */
export class DecimalType extends Type<Decimal, string> {
  override convertToDatabaseValue(value: Decimal): string {
    return Decimal.isDecimal(value) ? value.toFixed() : value
  }

  override convertToJSValue(text: string): Decimal {
    return new Decimal(text)
  }

  override compareAsType(): string {
    return 'string'
  }

  override getColumnType(): string {
    return 'numeric'
  }
}

/** The columns of the signature of a row (see signed-rows.ts). Only RowSigner writes them. */
export function signature() {
  return {
    revision: p.bigint('number').onCreate(() => 1),
    mac: p.blob().onCreate(() => Buffer.alloc(0)),
  }
}
