/** Reads docker-compose.yml. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { root } from './images.ts'

export type Service = {
  image: string
  pull_policy?: string
  build?: { context: string; target: string }
  user?: string
  command?: string[]
  entrypoint?: string[]
  working_dir?: string
  environment?: Record<string, string | null>
  volumes?: string[]
  networks?: string[] | Record<string, { ipv4_address?: string; aliases?: string[] } | null>
  network_mode?: string
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[] }
  restart: string
  read_only?: boolean
  cap_drop?: string[]
  cap_add?: string[]
  security_opt?: string[]
  privileged?: boolean
  tmpfs?: string[]
  ports?: string[]
  mem_limit?: string
  cpus?: number
  cpu_quota?: number
  pids_limit?: number
  stop_grace_period?: string
  profiles?: string[]
  logging?: unknown
  init?: boolean
  shm_size?: string
}

export type Compose = {
  services: Record<string, Service>
  networks: Record<string, { internal?: boolean; ipam?: { config: { subnet: string; ip_range: string }[] } } | null>
  volumes: Record<string, null>
}

/** The file as Compose reads it when no variable is set: aliases, merges and `${NAME:-default}` are resolved. */
export async function readCompose(file = 'docker-compose.yml'): Promise<Compose> {
  const text = await readFile(join(root, file), 'utf8')
  return parse(
    text.replaceAll(/\$\{\w+:-([^}]*)\}/g, (_, value) => value),
    // Compose's own tags (!override) say how two files are merged, and not what a value is.
    { merge: true, logLevel: 'error' },
  )
}

/** The stage of the Dockerfile that the service runs; undefined for a third-party image. */
export function stageOf({ image }: Service): string | undefined {
  return /^workspace-wallet\/([a-z]+):/.exec(image)?.[1]
}

export function networksOf({ networks = [] }: Service): string[] {
  return Array.isArray(networks) ? networks : Object.keys(networks)
}

/** The mounts of a service: `source` is the name of a volume or a path. */
export function mountsOf({ volumes = [] }: Service): { source: string; target: string; isReadOnly: boolean }[] {
  return volumes.map(volume => {
    const [source = '', target = '', mode] = volume.split(':')
    return { source, target, isReadOnly: mode === 'ro' }
  })
}

/** The command line of the redis container as settings for `startRedis`, with another data directory. */
export function redisSettings(compose: Compose, secretsDir: string, dataDir: string): Record<string, string> {
  const [, file, ...options] = compose.services.redis!.command!
  const settings: Record<string, string> = {}
  for (let at = 0; at < options.length; at += 2) settings[options[at]!.replace(/^--/, '')] = options[at + 1]!
  return { ...settings, include: file!.replace('/secrets/', `${join(secretsDir, 'redis')}/`), dir: dataDir }
}
