/**
 * Builds the images of the Dockerfile without Docker, as folders. It supports the instructions that this Dockerfile
 * uses; any other one is an error.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const root = fileURLToPath(new URL('../..', import.meta.url))

type Instruction = { name: string; text: string }
export type Stage = { name: string; from: string; instructions: Instruction[] }

/** The files, environment and commands of an image. */
export type Image = {
  directory: string
  environment: Record<string, string>
  user: string
  entrypoint: string[]
  command: string[]
}

export async function readStages(): Promise<Stage[]> {
  const text = await readFile(join(root, 'Dockerfile'), 'utf8')
  const stages: Stage[] = []
  for (const line of text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n')) {
    const [, name, rest] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? []
    if (!name || rest === undefined) continue
    if (name === 'FROM') {
      const [, from, stage] = /^(\S+) AS (\S+)$/.exec(rest) ?? []
      stages.push({ name: stage!, from: from!, instructions: [] })
    } else stages.at(-1)!.instructions.push({ name, text: rest.replaceAll(/\s+/g, ' ') })
  }
  return stages
}

/** The instructions of a stage, after those of the stage that it is built from. */
export function wholeStage(stages: Stage[], name: string): Instruction[] {
  const stage = stages.find(each => each.name === name)
  return stage ? [...wholeStage(stages, stage.from), ...stage.instructions] : []
}

/** Parses `COPY [--from=stage] [--chmod=mode] SOURCE… TARGET`. */
export function readCopy(text: string) {
  const words = text.split(' ')
  const option = (name: string): string | undefined =>
    words.find(word => word.startsWith(`--${name}=`))?.slice(name.length + 3)
  const paths = words.filter(word => !word.startsWith('--'))
  return { from: option('from'), mode: option('chmod'), sources: paths.slice(0, -1), target: paths.at(-1)! }
}

/** Builds one stage in a folder of `directory`. The stages that it copies from must have been built there. */
export async function buildImage(stages: Stage[], name: string, directory: string): Promise<Image> {
  const place = join(directory, name)
  await mkdir(place, { recursive: true })
  const image: Image = { directory: place, environment: {}, user: 'root', entrypoint: [], command: [] }
  let workingDirectory = '/'
  const inside = (path: string) => join(place, resolve(workingDirectory, path))
  for (const { name: instruction, text } of wholeStage(stages, name)) {
    if (instruction === 'WORKDIR') {
      workingDirectory = text
      await mkdir(inside('.'), { recursive: true })
    } else if (instruction === 'COPY') {
      const { from, mode, sources, target } = readCopy(text)
      for (const source of sources) {
        const to = target.endsWith('/') ? join(inside(target), basename(source)) : inside(target)
        await cp(from ? join(directory, from, source) : join(root, source), to, {
          recursive: true,
          verbatimSymlinks: true,
          filter: path => from !== undefined || !isIgnored(path),
        })
        if (mode) await promisify(execFile)('chmod', ['-R', mode, to])
      }
    } else if (instruction === 'RUN') {
      await promisify(execFile)('/bin/sh', ['-c', text], {
        cwd: inside('.'),
        env: {
          ...process.env,
          PATH: `${join(place, 'usr/local/bin')}:${process.env.PATH}`,
          npm_config_prefer_offline: 'true',
        },
        maxBuffer: 64 * 1024 * 1024,
      })
    } else if (instruction === 'ENV') {
      for (const pair of text.split(' ')) image.environment[pair.split('=')[0]!] = pair.split('=')[1]!
    } else if (instruction === 'USER') image.user = text
    else if (instruction === 'ENTRYPOINT') image.entrypoint = JSON.parse(text)
    else if (instruction === 'CMD') image.command = JSON.parse(text)
    else if (!['EXPOSE', 'HEALTHCHECK'].includes(instruction))
      throw new Error(`test/setup/images.ts does not support ${instruction}: add it there.`)
  }
  return { ...image, directory: join(place, workingDirectory) }
}

/** What .dockerignore excludes from the folders that it includes. */
function isIgnored(path: string): boolean {
  return path.endsWith('.test.ts') || basename(path) === 'node_modules'
}
