/** Finds the programs of a cluster of PostgreSQL. npm has none of them. */
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

export type ClusterPrograms = { patroni: string; etcd: string; haproxy: string; postgresBin: string }

/** Quorum commit came with this version of Patroni. */
const leastPatroni = 4

/** @throws Error that names the packages to install */
export async function findClusterPrograms(): Promise<ClusterPrograms> {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  const [patroni, etcd, haproxy, postgresBin] = await Promise.all([
    find('patroni', directories),
    find('etcd', directories),
    find('haproxy', directories),
    // Debian does not have it on the PATH.
    find('pg_rewind', ['/usr/lib/postgresql/18/bin', ...directories]),
  ])
  const missing = [
    (!patroni || (await majorVersionOf(patroni)) < leastPatroni) &&
      `patroni (${leastPatroni} or later) with python3-etcd`,
    !etcd && 'etcd-server',
    !haproxy && 'haproxy',
    (!postgresBin || (await majorVersionOf(postgresBin)) !== 18) && 'postgresql-18',
  ].filter(name => name !== false)
  if (missing.length > 0 || !patroni || !etcd || !haproxy || !postgresBin)
    throw new Error(
      `--ha needs packages that are not installed: ${missing.join(', ')}. Debian 13 has Patroni 4, etcd-server and haproxy; PostgreSQL 18 is in its successor, and at apt.postgresql.org.`,
    )
  return { patroni, etcd, haproxy, postgresBin: join(postgresBin, '..') }
}

async function find(name: string, directories: string[]): Promise<string | null> {
  for (const directory of directories) {
    const path = join(directory, name)
    const isExecutable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isExecutable) return path
  }
  return null
}

/** Of what it prints, such as `patroni 4.1.5`. */
async function majorVersionOf(program: string): Promise<number> {
  const { stdout } = await promisify(execFile)(program, ['--version'])
  return Number(/(\d+)[.\d]*\s*(\(.*\))?\s*$/.exec(stdout.trim())?.[1])
}
