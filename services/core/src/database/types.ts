import { p, Type } from '@mikro-orm/core'
import { Decimal, type Id, type IdKind, idFromUuid, isId, type Uuid, uuidFromId } from '@workspace-wallet/contract'

/** No record has this UUID. */
const nilUuid = '00000000-0000-0000-0000-000000000000'

/** An ID that no record has. It sorts before all others. */
export function absentId<Kind extends IdKind>(kind: Kind): Id<Kind> {
  return idFromUuid(kind, nilUuid as Uuid<Kind>)
}

/** The ID by which to look for a record: the text that a caller sent, or, if it is malformed, an ID that no record has. */
export function idToFind<Kind extends IdKind>(kind: Kind, text: string): Id<Kind> {
  return isId(kind, text) ? text : absentId(kind)
}

/** A public ID (`wal_…`) in the entity, its UUID in the database. */
export class PublicId<Kind extends IdKind> extends Type<Id<Kind>, Uuid<Kind>> {
  readonly kind: Kind

  constructor(kind: Kind) {
    super()
    this.kind = kind
  }

  override convertToDatabaseValue(id: Id<Kind>): Uuid<Kind> {
    return typeof id === 'string' ? uuidFromId(this.kind, id) : id
  }

  override convertToJSValue(uuid: Uuid<Kind>): Id<Kind> {
    return (uuid && idFromUuid(this.kind, uuid)) as Id<Kind>
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

/** The columns of the signature of a row (see tables/table.ts). Only RowSigner writes them. */
export function signature() {
  return {
    revision: p.bigint('number').onCreate(() => 1),
    mac: p.blob().onCreate(() => Buffer.alloc(0)),
  }
}
