import { randomBytes } from 'node:crypto'
import { copyFile, cp, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createLog } from '@workspace-wallet/runtime'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { makeTempDir } from '../../../../test/setup/temp.ts'
import { until } from '../../../../test/setup/until.ts'
import { openFileNonces } from './file-store.ts'
import { type Generations, nonceMac } from './generations.ts'
import { NonceFile } from './nonce-file.ts'
import { type NonceStore, nonceLifeMs } from './store.ts'

/** A claimed nonce is never new again, whatever happens to the file. */

const log = createLog('gateway', 'silent').log
let path: string
let store: NonceStore
const key = randomBytes(32).toString('base64')
/** The generations that were reported to core. No request was accepted before the first one. */
let begun: string[]
const generations: Generations = {
  readKey: async () => key,
  async begin(id, partitions) {
    if (!begun.includes(id)) begun.push(id)
    return { first: id === begun[0] ? [...partitions] : [], latest: id === begun.at(-1) ? [...partitions] : [] }
  },
  latest: async () => ({}),
}
const open = async () => {
  store = await openFileNonces(path, generations, {}, log)
  // Its thread may take longer to start than a claim may wait.
  await until('the file can be used', async () => (await store.fault()) === null)
}
const nowSeconds = () => Math.floor(Date.now() / 1000)
const claim = (nonce: string) => store.claim('ak_1', nonce, nowSeconds())

beforeEach(async () => {
  // In a directory that tests may move.
  path = join(await makeTempDir('nonce-file'), 'directory', 'nonces.db')
  await mkdir(join(path, '..'))
  begun = []
  await open()
})
afterEach(() => store.close())

test('of many equal claims exactly one is new; a look-up claims nothing', async () => {
  expect(await store.isUsed('ak_1', 'a', nowSeconds())).toBe(false)
  const claims = await Promise.all(Array.from({ length: 500 }, () => claim('a')))
  expect(claims.filter(({ isNew }) => isNew)).toHaveLength(1)
  expect(await store.isUsed('ak_1', 'a', nowSeconds())).toBe(true)
  expect(await store.claim('ak_2', 'a', nowSeconds())).toEqual({ isNew: true })
})

test('only its owner may read the file', async () => {
  await claim('a')
  for (const name of [path, `${path}-wal`, `${path}.state`]) expect((await stat(name)).mode & 0o777).toBe(0o600)
})

test('a store that is closed and opened again continues its generation', async () => {
  await claim('a')
  await store.close()
  await open()
  expect(await claim('a')).toEqual({ isNew: false })
  expect(await claim('b')).toEqual({ isNew: true })
})

const losses: Record<string, (olderCopy: string) => Promise<unknown>> = {
  deleted: () => rm(path),
  'replaced with an older copy': async olderCopy => {
    await copyFile(olderCopy, `${path}.new`)
    await rename(`${path}.new`, path)
  },
  'overwritten with an older copy': olderCopy => copyFile(olderCopy, path),
  'replaced with another file': () => writeFile(path, 'not SQLite'),
  'replaced with an older copy together with its log': async olderCopy => {
    await copyFile(olderCopy, path)
    await copyFile(`${olderCopy}-wal`, `${path}-wal`)
  },
}

describe.each(Object.keys(losses))('a file that was %s', name => {
  test.each(['while it was open', 'while it was closed'])('%s: what was accepted before is rejected', async when => {
    await claim('a')
    const olderCopy = `${path}.copy`
    await copyFile(path, olderCopy)
    await copyFile(`${path}-wal`, `${olderCopy}-wal`)
    await claim('b')
    if (when === 'while it was closed') await store.close()
    await losses[name]!(olderCopy)
    if (when === 'while it was closed') await open()
    for (const nonce of ['a', 'b', 'c'])
      await expect(claim(nonce), nonce).rejects.toMatchObject({
        code: 'S002',
        details: { retryAfterSeconds: expect.any(Number) },
      })
    expect(await store.fault()).toBe(null)
  })
})

/** Inode, size and change time of the file and of its log, as the store writes them. */
async function filesOf(): Promise<string> {
  const states = [path, `${path}-wal`].map(async name => {
    const found = await stat(name, { bigint: true }).catch(() => null)
    return found ? `${found.ino}:${found.size}:${found.ctimeNs}` : 'none'
  })
  return (await Promise.all(states)).join(' ')
}

/** Changes the file of the stopped store by SQL, and lets its log be part of it. */
function edit(sql: string): void {
  const database = new DatabaseSync(path)
  database.exec(`${sql}; pragma wal_checkpoint(truncate)`)
  database.close()
}

/** Replaces one of the two places where the file has a nonce: the table and its index. */
async function editPage(from: string, to: string, place: 'first' | 'last'): Promise<void> {
  edit('select 1')
  const bytes = await readFile(path)
  const places = [bytes.indexOf(from), bytes.lastIndexOf(from)]
  expect(new Set(places).size).toBe(2)
  bytes.write(to, place === 'first' ? places[0]! : places[1]!)
  await writeFile(path, bytes)
}

const exchange = `update nonce set name = case name when 'ak_1 a' then 'ak_1 b.' else 'ak_1 a.' end where name != 'ak_1 c';
  update nonce set name = rtrim(name, '.')`
const forget = 'create trigger forget after insert on nonce begin delete from nonce where id = new.id; end'
const edits: Record<string, () => unknown> = {
  'with a row removed': () => edit("delete from nonce where name = 'ak_1 b'"),
  'with its last row removed': () => edit("delete from nonce where name = 'ak_1 c'"),
  'with its first row removed': () => edit("delete from nonce where name = 'ak_1 a'"),
  'with all rows removed': () => edit('delete from nonce'),
  'with a row renamed': () => edit("update nonce set name = 'ak_1 x' where name = 'ak_1 b'"),
  'with a row made older': () => edit("update nonce set claimed_at = 0 where name = 'ak_1 b'"),
  'with two rows exchanged': () => edit(exchange),
  'with a row added': () => edit("insert into nonce (name, claimed_at, mac) values ('ak_1 x', 1, '')"),
  'with a trigger that removes nonces': () => edit(forget),
  'with a nonce changed in one of its two places': () => editPage('ak_1 b', 'ak_1 x', 'first'),
  'with a nonce changed in the other of its two places': () => editPage('ak_1 b', 'ak_1 x', 'last'),
}

describe.each(Object.entries(edits))('a file %s while the gateway is stopped', (_, change) => {
  beforeEach(async () => {
    for (const nonce of ['a', 'b', 'c']) await claim(nonce)
    await store.close()
  })
  const expectLoss = async () => {
    await open()
    for (const nonce of ['a', 'b', 'c', 'd']) await expect(claim(nonce), nonce).rejects.toMatchObject({ code: 'S002' })
    expect(await store.fault()).toBe(null)
  }

  test('is a loss, also with a state that names the changed file', async () => {
    const [, , ...rest] = (await readFile(`${path}.state`, 'utf8')).split(' ')
    await change()
    await writeFile(`${path}.state`, [await filesOf(), ...rest].join(' '))
    await expectLoss()
  })

  test('is a loss, also if its change time does not show it', async () => {
    const stored = (await readFile(`${path}.state`, 'utf8')).trimEnd()
    await change()
    // Whoever can set change times needs no new state. Here the state is written as if the times had been the same.
    const text = [await filesOf(), ...stored.split(' ').slice(2, -1)].join(' ')
    await writeFile(`${path}.state`, `${text} ${nonceMac(key, `state ${text}`)}`)
    await expectLoss()
  })
})

test('the tests above would notice nothing if the file were not edited', async () => {
  await claim('a')
  await store.close()
  const stored = (await readFile(`${path}.state`, 'utf8')).trimEnd()
  edit('select 1')
  const text = [await filesOf(), ...stored.split(' ').slice(2, -1)].join(' ')
  await writeFile(`${path}.state`, `${text} ${nonceMac(key, `state ${text}`)}`)
  await open()
  expect(await claim('a')).toEqual({ isNew: false })
})

test('an earlier directory that is moved back is a loss: requests were accepted in another file meanwhile', async () => {
  const directory = join(path, '..')
  await claim('a')
  await store.close()
  // A move of the directory changes neither inode nor change time of what it contains.
  await rename(directory, `${directory}.earlier`)
  await cp(`${directory}.earlier`, directory, { recursive: true })
  await open()
  await until('a request is accepted', () => store.claim('ak_1', 'b', nowSeconds() + 70).catch(() => null))
  await store.close()
  await rename(directory, `${directory}.later`)
  await rename(`${directory}.earlier`, directory)
  await open()
  await expect(store.claim('ak_1', 'b', nowSeconds())).rejects.toMatchObject({ code: 'S002' })
})

test('without the key of the nonce store, for which core is asked, no nonce is accepted', async () => {
  await store.close()
  let isCoreUp = false
  const read = async () => {
    if (!isCoreUp) throw new Error('no core answers')
    return key
  }
  store = await openFileNonces(path, { ...generations, readKey: read }, {}, log)
  await expect(claim('a')).rejects.toThrow('no core answers')
  expect(await store.fault()).toBe('no core answers')
  isCoreUp = true
  await until('the file can be used', async () => (await store.fault()) === null)
  expect(await claim('a')).toEqual({ isNew: true })
})

test('the first request with a timestamp that no earlier request can have is accepted', async () => {
  await claim('a')
  await rm(path)
  await until('a timestamp beyond the fence', () =>
    store.claim('ak_1', 'a', nowSeconds() + 70).catch(error => {
      expect(error).toMatchObject({ code: 'S002' })
      return null
    }),
  )
  expect(await store.isUsed('ak_1', 'a', nowSeconds() + 70)).toBe(true)
})

test('without the stored state of the file, a new generation begins', async () => {
  await claim('a')
  await store.close()
  await rm(`${path}.state`)
  await open()
  await expect(claim('a')).rejects.toMatchObject({ code: 'S002' })
})

test('a file that replaced the nonce file is moved aside', async () => {
  await store.close()
  await writeFile(path, 'precious')
  await open()
  expect(await readFile(`${path}.lost`, 'utf8')).toBe('precious')
})

test('a directory that cannot be written: no nonce is accepted, the error says why, and the store recovers by itself', async () => {
  await claim('a')
  const directory = join(path, '..')
  await rename(directory, `${directory}.away`)
  await expect(claim('b')).rejects.toThrow('no such file or directory')
  expect(await store.fault()).toContain(`the nonce file ${path} cannot be used`)
  await rename(`${directory}.away`, directory)
  expect(await claim('b')).toEqual({ isNew: true })
  expect(await claim('a')).toEqual({ isNew: false })
})

test.each([
  ['back', 0],
  ['forward and back', 200_000],
])('a nonce is kept as long as its timestamp is accepted, also if the system clock is set %s', async (_, forwardMs) => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  const file = new NonceFile({ path: join(await makeTempDir('nonce-file'), 'nonces.db'), key, keyRate: undefined })
  const ask = (kind: 'claim' | 'lookup', nonce: string) => file.answer([{ kind, apiKey: 'ak_1', nonce }]).results[0]
  vi.setSystemTime(Date.now() + forwardMs)
  ask('claim', 'captured')
  const timestampMs = Date.now()
  vi.setSystemTime(timestampMs - 200_000)
  while (Date.now() < timestampMs + 60_000) {
    vi.advanceTimersByTime(20_000)
    ask('claim', `at ${Date.now()}`)
    expect(ask('lookup', 'captured')).toEqual({ isNew: false })
  }
  file.close()
  vi.useRealTimers()
})

test('expired nonces are deleted', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  const other = join(await makeTempDir('nonce-file'), 'nonces.db')
  const file = new NonceFile({ path: other, key, keyRate: undefined })
  const claimMany = (name: string) =>
    file.answer(Array.from({ length: 100 }, (_, at) => ({ kind: 'claim', apiKey: 'ak_1', nonce: `${name}-${at}` })))
  claimMany('old')
  vi.advanceTimersByTime(nonceLifeMs)
  expect(file.answer([{ kind: 'lookup', apiKey: 'ak_1', nonce: 'old-0' }]).results).toEqual([{ isNew: false }])
  vi.advanceTimersByTime(1)
  claimMany('new')
  file.close()
  vi.useRealTimers()
  const database = new DatabaseSync(other)
  expect(database.prepare("select count(*) as count from nonce where name like '%new%'").get()).toEqual({ count: 100 })
  expect(database.prepare('select count(*) as count from nonce').get()).toEqual({ count: 100 })
  database.close()
})
