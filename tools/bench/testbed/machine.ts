import { execFile } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { arch, cpus, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { query } from '../../../cli/processes/database.ts'
import type { Machine } from '../measure/report.ts'
import { median } from '../measure/rounds.ts'
import type { Testbed } from './testbed.ts'

export async function describeMachine({ postgres, redis, directory }: Testbed): Promise<Machine> {
  const [version] = await query(postgres.url('postgres'), 'show server_version')
  const { stdout } = await promisify(execFile)(redis.program, ['--version'])
  return {
    cpu: cpus()[0]?.model.trim() ?? arch(),
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: `${platform()} ${release()}`,
    node: process.versions.node,
    postgres: String(version!.server_version),
    redis: /v=(\S+)/.exec(stdout)?.[1] ?? stdout.trim(),
    fsyncMicros: measureFsync(join(directory, 'fsync')),
  }
}

function measureFsync(path: string): number {
  const file = openSync(path, 'w')
  const block = Buffer.alloc(8192, 1)
  try {
    const micros = Array.from({ length: 200 }, (_, at) => {
      const startedAt = performance.now()
      writeSync(file, block, 0, block.length, (at % 16) * block.length)
      fdatasyncSync(file)
      return (performance.now() - startedAt) * 1000
    })
    return Math.round(median(micros))
  } finally {
    closeSync(file)
    unlinkSync(path)
  }
}
