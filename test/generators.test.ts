import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findPrograms } from '../cli/processes/programs.ts'
import { filesOf, guides } from './guides/pages.ts'
import { installGenerators } from './setup/generators.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'

/**
 * Lints the OpenAPI document that the service serves, and checks the code of docs/guides/generated-clients.md with what
 * generators make of it. guides.test.ts runs the programs of the guide.
 */

const execute = promisify(execFile)
const root = join(import.meta.dirname, '..')

let system: System
let directory: string
beforeAll(async () => {
  await findPrograms([{ names: ['python3'], aptPackage: 'python3' }])
  const [started, packages] = await Promise.all([
    startSystem({ gatewayEnvironment: { DOCS: 'on' } }),
    installGenerators(),
  ])
  system = started
  directory = join(await makeTempDir('generated'), 'generated')
  await mkdir(directory)
  await symlink(packages, join(directory, 'node_modules'))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  const guide = guides.find(({ path }) => path.endsWith('/generated-clients.md'))!
  for (const { path, text } of filesOf(guide)) await writeFile(join(directory, basename(path)), text)
  const document = await (await fetch(`${system.baseUrl}/openapi.json`)).text()
  await writeFile(join(directory, 'openapi.json'), document)
})
afterAll(() => system.stop())

/** Runs a program in the directory. Returns what it prints, also if it fails. */
async function run(program: string, ...args: string[]): Promise<string> {
  try {
    return (await execute(program, args, { cwd: directory })).stdout
  } catch (error) {
    return `${(error as { stdout: string }).stdout}\n${error}`
  }
}
const installed = (name: string) => join(directory, 'node_modules/.bin', name)

test('Spectral finds nothing in the document that is served, not even a hint, with its recommended rules', async () => {
  await writeFile(join(directory, '.spectral.json'), '{ "extends": "spectral:oas" }')
  const problems = JSON.parse(await run(installed('spectral'), 'lint', 'openapi.json', '--format', 'json', '--quiet'))
  expect(problems).toEqual([])
})

test('the programs of the guide are strictly typed with what the generators make of the document', async () => {
  await run(installed('openapi-typescript'), 'openapi.json', '--output', 'api.d.ts')
  await run(installed('orval'))
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023'],
    types: ['node'],
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
  }
  const include = ['api.d.ts', 'wallet.ts', 'pay-*.ts']
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }))
  await writeFile(join(directory, 'pay-wrongly.ts'), wrong)
  const errors = await run(join(root, 'node_modules/.bin/tsc'), '--project', '.')
  expect(errors.match(/^\S+\.ts\(\d+/gm)).toEqual(['pay-wrongly.ts(4', 'pay-wrongly.ts(6'])
})

/** Lines 4 and 6 have an amount that is a number, and a field that does not exist. */
const wrong = `import type { components } from './api.d.ts'
import type { Wallet } from './wallet.ts'
const wallets = { sourceWalletId: '', targetWalletId: '', currency: 'USD' } as const
export const transfer: components['schemas']['CreateTransfer'] = { ...wallets, amount: 10, bizId: 'a' }
export function nameOf(wallet: Wallet): string {
  return wallet.title
}
`

const vectors: { secret: string; method: string; target: string; bodyBase64: string; signature: string }[] = JSON.parse(
  await readFile(join(root, 'test/vectors/signing.json'), 'utf8'),
)

test.each([
  ['TypeScript', () => [process.execPath, '--input-type=module', '--eval', inTypeScript]],
  ['Python', () => ['python3', '-c', inPython]],
] as const)('the signatures of the guide are those of the vectors: %s', async (_, command) => {
  const [program, ...args] = command()
  const { stdout } = await execute(program!, [...args, join(root, 'test/vectors/signing.json')], { cwd: directory })
  expect(vectors.length).toBeGreaterThan(5)
  expect(stdout.trim().split('\n')).toEqual(vectors.map(({ signature }) => signature))
})

const inTypeScript = `
  import { readFileSync } from 'node:fs'
  import { signatureOf } from './sign.ts'
  for (const { secret, target, bodyBase64, ...parts } of JSON.parse(readFileSync(process.argv.at(-1))))
    console.log(signatureOf(secret, { ...parts, path: target.split('?')[0], body: Buffer.from(bodyBase64, 'base64') }))
`
const inPython = `
import base64, json, sys
from pay import signature_of
for vector in json.load(open(sys.argv[1])):
    method, path, body = vector["method"], vector["target"].split("?")[0], base64.b64decode(vector["bodyBase64"])
    print(signature_of(vector["secret"], method, path, vector["timestamp"], vector["nonce"], body))
`
