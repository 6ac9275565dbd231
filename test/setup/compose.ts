/** docker-compose.yml as data. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { root } from './images.ts'

export type Service = {
  image: string
  build?: { context: string; target: string }
  user?: string
  command?: string[]
  entrypoint?: string[]
  environment?: Record<string, string | null>
  volumes?: string[]
  configs?: { source: string; target: string }[]
  networks?: string[] | Record<string, { ipv4_address: string } | null>
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
  configs: Record<string, { file: string }>
}

/** Aliases and merges resolved, as compose itself reads it. */
export async function readCompose(): Promise<Compose> {
  return parse(await readFile(join(root, 'docker-compose.yml'), 'utf8'), { merge: true })
}

export function networksOf({ networks = [] }: Service): string[] {
  return Array.isArray(networks) ? networks : Object.keys(networks)
}

/** What a service mounts: name or path, and where. */
export function mountsOf({ volumes = [] }: Service): { source: string; target: string; isReadOnly: boolean }[] {
  return volumes.map(volume => {
    const [source = '', target = '', mode] = volume.split(':')
    return { source, target, isReadOnly: mode === 'ro' }
  })
}
