import { describe, expect, test } from 'vitest'
import '../compose.ts'
import '../routers/app-router.ts'
import { initialMigration } from './migrations/0001-initial.ts'
import { statements } from './statement.ts'

/**
 * Citus rejects some statements on distributed tables that PostgreSQL takes, and the same SQL runs on both. These rules find what can
 * be seen in a text; `npm run scale` runs all of it on a cluster.
 */
type Rule = { why: string; breaks: (sql: string) => boolean }

const volatile = /\b(clock_timestamp|timeofday|random|gen_random_uuid|nextval|set_config|pg_current_xact_id)\(/
const mutable = new RegExp(
  `${volatile.source}|\\b(now|statement_timestamp|transaction_timestamp|pg_current_xact_id_if_assigned)\\(`,
)

/** From each of these words to the end of the statement, or of the parentheses around it. */
function from(word: RegExp, sql: string): string[] {
  return Array.from(sql.matchAll(new RegExp(word, 'g')), ({ index }) => {
    let depth = 0
    for (let at = index; at < sql.length; at++) {
      if (sql[at] === '(') depth++
      if (sql[at] === ')' && --depth < 0) return sql.slice(index, at)
    }
    return sql.slice(index)
  })
}

const modifications = (sql: string) => from(/\b(update (?!set\b|on\b|of\b)[\w{}.]+ .*?\bset\b|delete from)\b/s, sql)

const rules: Rule[] = [
  {
    why: 'UPDATE and DELETE call no volatile function: give it a variable, or a materialized CTE with a stable one',
    breaks: sql => modifications(sql).some(text => volatile.test(text)),
  },
  {
    why: 'RETURNING calls immutable functions only',
    breaks: sql => from(/\breturning\b/, sql).some(text => mutable.test(text)),
  },
  {
    why: 'CASE and COALESCE of UPDATE and DELETE call immutable functions only: compute the value in a materialized CTE',
    breaks: sql =>
      modifications(sql).some(text =>
        [...from(/\bcase\b/, text).map(each => each.split(/\bend\b/)[0]!), ...from(/(?<=\bcoalesce\()/, text)].some(
          each => mutable.test(each),
        ),
      ),
  },
  {
    why: 'INSERT … SELECT does not read jsonb_to_record(set): use jsonb_populate_record, or VALUES',
    breaks: sql => from(/\binsert into\b/, sql).some(text => /\bjsonb?_to_record(set)?\(/.test(text)),
  },
  { why: 'no INSERT is a CTE', breaks: sql => /\bas (materialized )?\(\s*insert into\b/.test(sql) },
  { why: 'UNION is of columns, not of whole rows', breaks: sql => /\btable \w+ union\b/.test(sql) },
]

const brokenBy = (sql: string) => {
  const text = sql.replaceAll(/--.*/g, '').replaceAll(/'[^']*'/g, "''")
  return rules.filter(({ breaks }) => breaks(text)).map(({ why }) => why)
}

/** The statements of the functions that the migrations create. */
function functionStatements(): [string, string][] {
  const texts: string[] = []
  const migration = new (initialMigration(sql => sql))({} as never, {} as never)
  Object.assign(migration, { addSql: (sql: string) => texts.push(sql) })
  void migration.up()
  return texts.flatMap(text => {
    const [, name, body] = /create function (\w+).*?\$\$(.*)\$\$/s.exec(text) ?? []
    return (body ?? '').split(';').map((sql, at): [string, string] => [`${name}, statement ${at + 1}`, sql])
  })
}

describe('Citus takes', () => {
  test('every prepared statement', () => {
    const found = [...statements].flatMap(([name, { text }]) => brokenBy(text).map(why => `${name}: ${why}`))
    expect(statements.size).toBeGreaterThan(50)
    expect(found).toEqual([])
  })

  test('every statement of a function', () => {
    const all = functionStatements()
    expect(all.length).toBeGreaterThan(100)
    expect(all.flatMap(([name, sql]) => brokenBy(sql).map(why => `${name}: ${why}`))).toEqual([])
  })
})

test.each([
  ['update ledger l set mac = $1 where l.last_posted_at < clock_timestamp()', 0],
  ['with seen as (update instance i set seen_at = clock_timestamp() where i.id = $1) select 1', 0],
  ['delete from part where uploaded_at < clock_timestamp()', 0],
  ['update access_revision set revision = revision + 1 returning revision, clock_timestamp()', 0],
  ['insert into audit (at) values ($1) returning now()', 1],
  ['update wallet w set mac = $1 where w.xmin = coalesce($2, pg_current_xact_id_if_assigned()::xid)', 2],
  ['update webhook w set next_attempt_at = case when $1 then statement_timestamp() else w.next_attempt_at end', 2],
  ['insert into journal (id) select j.id from jsonb_to_record($1) as j (id uuid)', 3],
  ['with inserted as (insert into hold select $1 returning id) select * from inserted', 4],
  ['select * from (table updated union all table inserted) h', 5],
])('it does not take: %s', (sql, rule) => {
  expect(brokenBy(sql)).toContain(rules[rule]!.why)
})

test.each([
  'with changed as (update access_revision set revision = revision + 1 returning revision) select revision, clock_timestamp() from changed',
  'with used as materialized (select now() as at) update api_key k set last_used_at = used.at from used where k.id = $1',
  'select date_trunc($1, clock_timestamp()) from wallet for no key update',
  'insert into refusal (at) select now() from jsonb_array_elements($1) r',
])('it takes: %s', sql => {
  expect(brokenBy(sql)).toEqual([])
})
