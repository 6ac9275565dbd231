/** Commands that documentation shows exist, with the options and the services that they name. */
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { commands } from '../cli/admin/commands/all.ts'
import { root } from './setup/images.ts'

type Shown = { where: string; words: string[] }

/** What stands in backticks or is a line of a code block, without what a shell does with its output. */
async function shownCommands(): Promise<Shown[]> {
  const found: Shown[] = []
  for await (const file of glob(['README.md', 'docs/**/*.md'], { cwd: root })) {
    const text = await readFile(join(root, file), 'utf8')
    const blocks = Array.from(text.matchAll(/^ *```\w*\n(.*?)^ *```/gms), ([, block]) => block!.replaceAll('\\\n', ' '))
    const inline = text.replaceAll(/^ *```.*?^ *```/gms, '').matchAll(/`([^`]+)`/g)
    const lines = [...blocks.flatMap(block => block.split('\n')), ...Array.from(inline, ([, code]) => code!)]
    for (const line of lines)
      found.push({ where: `${file}: ${line}`, words: line.replaceAll(/\$\([^)]*\)/g, 'VALUE').split(/\s+/) })
  }
  return found
}

/** The words after the first words of a command, up to what a shell does with its output. */
function argumentsAfter(words: string[], ...starts: string[][]): string[] | undefined {
  for (const start of starts)
    for (let at = 0; at + start.length <= words.length; at++) {
      if (!start.every((word, index) => words[at + index] === word)) continue
      const rest = words.slice(at + start.length)
      const end = rest.findIndex(word => /^([|>&;#]|&&|>>)/.test(word) || /[;)]$/.test(word))
      return end === -1 ? rest : rest.slice(0, end)
    }
  return undefined
}

const optionsOf = (words: string[]) => words.flatMap(word => /^--([a-z-]+)/.exec(word)?.[1] ?? [])

test('every command of npm run admin exists, and has the options that are shown', async () => {
  const everywhere = ['json', 'help']
  let count = 0
  for (const { where, words } of await shownCommands()) {
    const rest = argumentsAfter(
      words,
      ['npm', 'run', 'admin', '--'],
      ['npm', 'run', '--silent', 'admin', '--'],
      ['admin'],
    )
    const [noun, verb] = rest ?? []
    if (!/^[a-z]+$/.test(noun ?? '') || !/^[a-z-]+$/.test(verb ?? '')) continue
    const command = commands.find(each => each.noun === noun && each.verb === verb)
    expect(command, where).toBeDefined()
    const known = [...Object.keys(command!.flags), ...everywhere]
    expect(
      optionsOf(rest!).filter(option => !known.includes(option)),
      where,
    ).toEqual([])
    count++
  }
  expect(count).toBeGreaterThan(60)
})

test('every command of docker compose names services and profiles that exist', async () => {
  const services: string[] = []
  const profiles = new Set<string>()
  for (const file of ['docker-compose.yml', 'docker-compose.ha.yml']) {
    const compose = parse(await readFile(join(root, file), 'utf8'), {
      merge: true,
      logLevel: 'error',
      customTags: [override],
    })
    for (const [name, service] of Object.entries<{ profiles?: string[] }>(compose.services)) {
      services.push(name)
      for (const profile of service.profiles ?? []) profiles.add(profile)
    }
  }
  let count = 0
  for (const { where, words } of await shownCommands()) {
    const rest = argumentsAfter(words, ['docker', 'compose'])
    if (!rest || rest.some(word => /^[$…]/.test(word))) continue
    const profile = rest.indexOf('--profile')
    if (profile !== -1) expect(profiles, where).toContain(rest[profile + 1])
    const verb = rest.findIndex(word => /^(exec|run|logs|kill|restart|stop|up|cp)$/.test(word))
    if (verb === -1) continue
    const named = servicesOf(rest[verb]!, rest.slice(verb + 1))
    expect(
      named.filter(name => !services.includes(name)),
      where,
    ).toEqual([])
    count += named.length
  }
  expect(count).toBeGreaterThan(40)
})

/** `!override` of Compose replaces what another file says. */
const override = { tag: '!override', collection: 'map' as const, resolve: (value: unknown) => value }
const optionsWithValue = [
  '--signal',
  '--tail',
  '--since',
  '--entrypoint',
  '--volume',
  '-v',
  '-e',
  '--env',
  '--user',
  '-u',
]

/** `exec` and `run` name one service, before a command; the others name any number of them. */
function servicesOf(verb: string, rest: string[]): string[] {
  const named = rest.filter(
    (word, at) => word !== '' && !word.startsWith('-') && !optionsWithValue.includes(rest[at - 1] ?? ''),
  )
  if (verb === 'cp') return named.flatMap(word => /^([\w-]+):/.exec(word)?.[1] ?? [])
  return verb === 'exec' || verb === 'run' ? named.slice(0, 1) : named
}
