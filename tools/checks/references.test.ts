import { expect, test } from 'vitest'
import { missingReferences, type Names } from './references.ts'
import { readPaths, readTexts, type Source } from './sources.ts'

function namesOf(texts: readonly Source[], paths: readonly string[]): Names {
  // Documentation does not prove that a symbol exists, nor do this check and its test.
  const code = texts.filter(({ path }) => !path.endsWith('.md') && !path.startsWith('tools/checks/references'))
  return {
    paths,
    words: new Set(code.flatMap(({ text }) => text.match(/\w+/g) ?? [])),
    texts: new Map(texts.map(({ path, text }) => [path, text])),
  }
}

test('documentation and comments name files and symbols that exist', async () => {
  const [texts, paths] = await Promise.all([readTexts(), readPaths()])
  const names = namesOf(texts, paths)
  const checked = texts.filter(({ path }) => !path.startsWith('tools/checks/references'))
  expect(checked.flatMap(source => missingReferences(source, names))).toEqual([])
  // The check has read these files.
  const read = checked.map(({ path }) => path)
  expect(read).toEqual(expect.arrayContaining(['README.md', 'docs/decisions/0020-mikro-orm-packages.md', 'Dockerfile']))
})

test('the index of the decisions links each of them', async () => {
  const paths = (await readPaths()).filter(path => /^docs\/decisions\/\d/.test(path))
  const index = (await readTexts()).find(({ path }) => path === 'docs/decisions/README.md')!
  const linked = [...index.text.matchAll(/\((\d[^)]+\.md)\)/g)].map(([, file]) => `docs/decisions/${file}`)
  expect(linked.sort()).toEqual(paths.sort())
})

const page = { path: 'docs/page.md', text: '# A page\n\n## What we do, and why\n' }
const file = { path: 'gateway/src/http/app.ts', text: 'export function createApp() {}' }
const other = { path: 'gateway/src/http/envelope.ts', text: 'export const sendSuccess = 1' }
const names = namesOf(
  [page, file, other],
  [page, file, other, { path: 'docs/decisions/0003-key-change-propagation.md' }].map(({ path }) => path),
)

test.each([
  ['docs/page.md', 'See `gateway/src/http/server.ts`.', 'gateway/src/http/server.ts'],
  ['docs/page.md', '| named SQL | `http/queries.ts`, `http/app.ts` |', 'http/queries.ts'],
  ['docs/page.md', 'One file for each: `gateway/src/*/queries.ts`.', 'gateway/src/*/queries.ts'],
  ['docs/page.md', 'In `gateway/src/locales/`.', 'gateway/src/locales'],
  ['docs/page.md', 'The steps are in `http/auth`.', 'http/auth'],
  ['docs/page.md', 'The steps are in `gateway/src/auth/`.', 'gateway/src/auth'],
  ['docs/page.md', '    gateway/src/http/server.ts   the server', 'gateway/src/http/server.ts'],
  ['docs/page.md', '```\nnode gateway/src/main.ts\n```', 'gateway/src/main.ts'],
  ['docs/page.md', 'Call `createServer(app)`.', 'createServer'],
  ['docs/page.md', 'See `sendSuccess` in `http/app.ts`.', '`sendSuccess` in `http/app.ts`'],
  ['docs/page.md', 'See [the code](../gateway/src/http/server.ts).', '../gateway/src/http/server.ts'],
  ['docs/page.md', 'See [below](#what-we-do).', '#what-we-do'],
  ['docs/decisions/0003-key-change-propagation.md', 'See [a page](../page.md#why).', '../page.md#why'],
  ['gateway/src/http/app.ts', '    /** See `clientAddress` in network/addresses.ts. */', 'network/addresses.ts'],
  ['gateway/src/http/app.ts', 'app.use(docs) // as in server.ts', 'server.ts'],
  ['gateway/src/http/app.ts', '/** Why: docs/decisions/0033. */', 'docs/decisions/0033'],
  ['Dockerfile', '# See docs/deployment.md', 'docs/deployment.md'],
  ['gateway/src/a.sql', '-- as in gateway/src/b.sql', 'gateway/src/b.sql'],
])('a reference to nothing is detected: %s, %s', (path, text, name) => {
  const line = text.split('\n').findIndex(each => each.includes(name)) + 2
  expect(missingReferences({ path, text: `\n${text}` }, names)).toEqual([`${path}:${line} ${name}`])
})

test.each([
  ['docs/page.md', 'See `gateway/src/http/app.ts`, `app.ts`, `gateway/src/http` and `gateway/src/{http,api}/*.ts`.'],
  ['docs/page.md', 'See `createApp` in `http/app.ts`, and [below](#what-we-do-and-why).'],
  ['docs/page.md', 'It writes `.data/demo.json`; call `response.json()`.'],
  ['docs/page.md', '```\nimport "./server.ts"\n```'],
  ['docs/page.md', '    gateway/src/http/app.ts   the app'],
  ['docs/page.md', 'See `src/http/`, and send `application/json`.'],
  ['docs/page.md', 'See [the site](https://example.com/a.md#b).'],
  ['gateway/src/http/app.ts', "import { serve } from './server.ts'"],
  ['gateway/src/http/app.ts', '/** Why: docs/decisions/0003. */'],
])('a reference to a file or symbol passes: %s, %s', (path, text) => {
  expect(missingReferences({ path, text }, names)).toEqual([])
})
