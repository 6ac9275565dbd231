import pg from 'pg'
import '../services/core/src/compose.ts'
import '../services/core/src/routers/app-router.ts'
import { statements } from '../services/core/src/database/statement.ts'
import { startupOf } from '../services/core/src/database/session-settings.ts'
const client = new pg.Client(startupOf(process.argv[2]!, { plan_cache_mode: process.argv[3] ?? 'force_generic_plan' }))
await client.connect()
let ok = 0, n = 0
for (const [name, { text }] of statements) {
  const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(m => Number(m[1])))
  const values = Array.from({ length: count }, () => null)
  await client.query('begin')
  try { await client.query({ name: `s${n++}`, text, values }); ok++ } catch (error: any) { console.log('FAIL', name, error.code, error.message, error.detail ?? '', error.hint ?? '') }
  await client.query('rollback')
}
console.log('ok', ok, 'of', statements.size)
await client.end()
