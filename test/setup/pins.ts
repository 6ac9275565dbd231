import type { ClientBase } from 'pg'
import { execute } from './database.ts'

/** PostgreSQL's error when each of its buffers has a page that somebody uses. */
export const withoutBuffers = { code: 'XX000', message: 'no unpinned buffers available' }

/** More than a server with `shared_buffers` of 16 MB has buffers. */
const pages = 3_000

/** Creates a table with many pages, which this role may read. */
export async function createPages(ownerUrl: string, role: string): Promise<void> {
  await execute(
    ownerUrl,
    `create table page (content text storage plain);
     insert into page select repeat('x', 7000) from generate_series(1, ${pages});
     grant select on page to ${role}`,
  )
}

/** Opens cursors in a transaction, each of which keeps a page in a buffer, until there is no buffer for another page. */
export async function pinBuffers(client: ClientBase): Promise<void> {
  await client.query('begin')
  let page = 0
  for (const count of [100, 1])
    for (let isFull = false; !isFull; ) {
      const cursors = Array.from({ length: count }, (_, at) => page + at).map(
        at => `declare c${at} cursor for select from page where ctid = '(${at},1)'; fetch c${at};`,
      )
      try {
        await client.query(`savepoint s; ${cursors.join('')} release savepoint s`)
        page += count
      } catch (error) {
        if ((error as Error).message !== withoutBuffers.message) throw error
        await client.query('rollback to savepoint s')
        isFull = true
      }
    }
}
