import {
  type AnyEntity,
  type Dictionary,
  type EntityData,
  type QueryResult,
  RawQueryFragment,
  type Transaction,
} from '@mikro-orm/core'
import { NativeQueryBuilder, PostgreSqlConnection, PostgreSqlDriver } from '@mikro-orm/postgresql'
import { CompiledQuery } from 'kysely'
import { bytesText } from './statement.ts'

/**
 * MikroORM's driver, except that values are not in the text of a statement. MikroORM 7.2.1 writes them into it, and while the statement
 * runs, `pg_stat_activity` shows the text to every session of the same role. Whoever has the password of the service's role could read
 * there what core has signed, end its session before it commits, and write as much of it as they like.
 */
export class BindingDriver extends PostgreSqlDriver {
  protected override readonly connection = new BindingConnection(this.config)
}

type Query = string | NativeQueryBuilder | RawQueryFragment
type Params = readonly unknown[] | Dictionary<unknown>
type Result = QueryResult | EntityData<AnyEntity> | EntityData<AnyEntity>[]

class BindingConnection extends PostgreSqlConnection {
  override async execute<Found extends Result = EntityData<AnyEntity>[]>(
    query: Query,
    params: Params = [],
    method: 'all' | 'get' | 'run' = 'all',
    transaction?: Transaction,
  ): Promise<Found> {
    await this.ensureConnection()
    const values: string[] = []
    const text = this.#bind(fragmentOf(query, params), values)
    const result = await (transaction ?? this.getClient()).executeQuery(CompiledQuery.raw(text, values))
    return this.transformRawResult<Found>(result, method)
  }

  /** The text with `$1` and so on in place of the values, which are added to `values`. */
  #bind({ sql, params }: RawQueryFragment, values: string[]): string {
    return this.platform.formatQuery(
      sql,
      params.map(param => this.#inText(param, values)),
    )
  }

  /**
   * What the text has in place of a `?`. Numbers, booleans and nulls stay in it. Of all others, PostgreSQL infers the type by the same
   * rules as that of a quoted literal.
   */
  #inText(param: unknown, values: string[]): unknown {
    if (param instanceof RawQueryFragment) return new RawQueryFragment(this.#bind(param, values))
    if (Array.isArray(param))
      return new RawQueryFragment(
        param.map(() => '?').join(', '),
        param.map(each => this.#inText(each, values)),
      )
    const value = textOf(param)
    return value === null ? param : new RawQueryFragment(`$${values.push(value)}`)
  }
}

/** The text form of a value that is bound; null for others. */
function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null) return null
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return bytesText(value)
  return JSON.stringify(value)
}

function fragmentOf(query: Query, params: Params): RawQueryFragment {
  if (query instanceof NativeQueryBuilder) return query.toRaw()
  if (query instanceof RawQueryFragment) return query
  if (!Array.isArray(params)) throw new Error('parameters with names are not supported')
  return new RawQueryFragment(query, [...params])
}
