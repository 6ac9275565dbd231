import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { OpenApiDocument } from './openapi-document.ts'
import { referenceBody } from './reference-page.ts'
import { referenceEntries } from './search-index.ts'

const document = JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')) as OpenApiDocument
const page = referenceBody(document).html
const articles = new Map(
  page
    .split('<article ')
    .slice(1)
    .map(article => [/id="(\w+)"/.exec(article)![1]!, article]),
)

type FieldList = { title: string; path: string; names: string[] }

/** The lists of fields of an operation. `names` are without those of lists inside it. */
function fieldListsOf(operation: string): FieldList[] {
  const lists: FieldList[] = []
  const open: FieldList[] = []
  let title = ''
  const tags =
    /<(?:summary|h4)>(.*?)<\/(?:summary|h4)>|<dl class="fields">|<\/dl>|<dt><a href="#[^"]+"><code>(.*?)<\/code>/gs
  for (const [tag, text, name] of articles.get(operation)!.matchAll(tags)) {
    if (text !== undefined) title = text.replaceAll(/<[^>]+>/g, '')
    else if (name !== undefined) open.at(-1)!.names.push(name)
    else if (tag === '</dl>') open.pop()
    else {
      const list = { title, path: [...open.map(each => each.title), title].join(' > '), names: [] }
      lists.push(list)
      open.push(list)
    }
  }
  return lists.filter(list => list.title !== 'Errors')
}

const namesOf = (operation: string, title: string) => fieldListsOf(operation).find(list => list.title === title)?.names

test.each([...articles.keys()])('%s: each list of fields has fields, and a title of its own', operation => {
  const lists = fieldListsOf(operation)
  expect(lists.length).toBeGreaterThan(0)
  for (const { title, names } of lists) expect(names.length, title).toBeGreaterThan(0)
  const paths = lists.map(({ path }) => path)
  expect(paths).toEqual([...new Set(paths)])
})

test('the answer of readEvents is described: its cursor, what all events have, and the data of each type', () => {
  const page = ['content', 'after', 'afterEventId', 'types', 'last', 'lastEventId', 'more']
  expect(namesOf('readEvents', 'Fields of the answer')).toEqual(page)
  const common = ['eventId', 'position', 'type', 'timestamp', 'workspaceId', 'data']
  expect(namesOf('readEvents', 'Fields of content')).toEqual(common)
  const transfer = ['transfer', 'balances', 'holdRemaining']
  expect(namesOf('readEvents', 'Fields of data of transfer.completed')).toEqual(transfer)
  expect(namesOf('readEvents', 'Fields of data of hold.created, hold.released, hold.expired')).toEqual(['hold'])
})

test('the items of a batch are described once for each kind', () => {
  expect(namesOf('createTransferBatch', 'Fields of transfers with reversesTransferId')).toContain('amount')
  const create = 'Fields of transfers with sourceWalletId, targetWalletId'
  expect(namesOf('createTransferBatch', create)).toContain('holdId')
})

test('each field has an ID of its own, which its link names', () => {
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!)
  expect(ids).toEqual([...new Set(ids)])
  const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id!)
  expect(links.length).toBeGreaterThan(300)
  expect(links.filter(id => !ids.includes(id))).toEqual([])
})

test('all values of a field are on the page', () => {
  for (const code of document.components!.schemas!.Currency!.enum!)
    expect(articles.get('createTransfer')).toContain(code)
  expect(page).not.toContain('see the <a href="/openapi.json">')
})

test('everything that the search finds in the reference is on the page', () => {
  const entries = referenceEntries(document)
  expect(entries.length).toBeGreaterThan(300)
  const missing = entries.filter(({ url }) => !page.includes(` id="${url.replace('/docs#', '')}"`))
  expect(missing).toEqual([])
})
