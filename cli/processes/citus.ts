/** Databases of a Citus cluster that runs already, for tests and tools. */
import { query } from './database.ts'

/** The URL of the same database on another server, or of another database on the same one. */
const at = (url: string, changes: { host?: string; pathname?: string }) => Object.assign(new URL(url), changes).href

/** The nodes of a cluster, the coordinator first. @param url a superuser's, of a database of the coordinator that has Citus */
async function nodesOf(url: string): Promise<{ name: string; port: number }[]> {
  const rows = await query(
    url,
    `select nodename as name, nodeport as port from pg_dist_node where noderole = 'primary' order by groupid`,
  )
  return rows as { name: string; port: number }[]
}

/** Creates a database with Citus on all nodes, and joins them. @returns its URL on the coordinator, and its workers as `host:port` */
export async function createCitusDatabase(url: string, name: string): Promise<{ url: string; workers: string[] }> {
  const nodes = await nodesOf(url)
  for (const { name: host, port } of nodes) {
    const node = at(url, { host: `${host}:${port}` })
    await query(at(node, { pathname: '/postgres' }), `create database ${name}`)
    await query(node, `alter database ${name} set citus.enable_unsafe_triggers = on`)
    await query(at(node, { pathname: `/${name}` }), 'create extension citus')
  }
  const [coordinator, ...workers] = nodes
  const created = at(url, { pathname: `/${name}` })
  await query(created, 'select citus_set_coordinator_host($1, $2)', [coordinator!.name, coordinator!.port])
  for (const { name: host, port } of workers) await query(created, 'select citus_add_node($1, $2)', [host, port])
  return { url: created, workers: workers.map(({ name: host, port }) => `${host}:${port}`) }
}

/** @param url of another database of the coordinator */
export async function dropCitusDatabase(url: string, name: string): Promise<void> {
  for (const { name: host, port } of await nodesOf(url))
    await query(
      at(url, { host: `${host}:${port}`, pathname: '/postgres' }),
      `drop database if exists ${name} with (force)`,
    )
}
