import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { nodeOptions } from './node-options.ts'
import type { System } from './system.ts'

export const root = fileURLToPath(new URL('../../', import.meta.url))
export const adminProgram = join(root, 'cli/admin.ts')

type Service = Pick<System, 'coreUrl' | 'adminToken'>

export type Ran = { exitCode: number; stdout: string; stderr: string }

/** The environment of a process that administers this core, and nothing else of this process. */
export function adminEnvironment({ coreUrl, adminToken }: Service): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  return { PATH, NODE_COMPILE_CACHE, CORE_URL: coreUrl, CORE_TOKEN: adminToken }
}

/** Runs `npm run admin` as its users do, in a process of its own. */
export function runAdminProgram(args: string[], env: NodeJS.ProcessEnv, cwd = root): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>()
  execFile(process.execPath, [...nodeOptions, adminProgram, ...args], { cwd, env }, (error, stdout, stderr) => {
    resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr })
  })
  return promise
}

/** Runs a command. @param texts arguments that may contain spaces */
export function runAdmin(system: Service, line: string, ...texts: string[]): Promise<Ran> {
  return runAdminProgram([...line.split(' '), ...texts], adminEnvironment(system))
}

/** What a command that succeeds returns with `--json`. */
export async function adminJson<Result = Record<string, string>>(
  system: Service,
  line: string,
  ...texts: string[]
): Promise<Result> {
  const { exitCode, stdout, stderr } = await runAdmin(system, line, ...texts, '--json')
  expect({ line, exitCode, stderr }).toEqual({ line, exitCode: 0, stderr: '' })
  return JSON.parse(stdout) as Result
}
