import type { Em } from './orm.ts'
import { type Queryable, run, type Statement } from './statement.ts'

/** Runs a statement, in whose text each value occurs once and in order, and returns its rows. */
export type Run = <Row>(statement: Statement<Row>, values: unknown[]) => Promise<Row[]>

/** On a connection of a pool. */
export function runOn(db: Queryable): Run {
  return (statement, values) => run(db, statement, values)
}

/** In a transaction of the ORM. */
export function runIn(em: Em): Run {
  return <Row>({ text }: Statement<Row>, values: unknown[]) =>
    em.execute(text.replaceAll(/\$\d+/g, '?'), values) as Promise<Row[]>
}
