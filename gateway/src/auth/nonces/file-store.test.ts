import { copyFile, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createLog } from '@workspace-wallet/runtime'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { makeTempDir } from '../../../../test/setup/temp.ts'
import { until } from '../../../../test/setup/until.ts'
import { openFileNonces } from './file-store.ts'
import { NonceFile } from './nonce-file.ts'
import { type NonceStore, nonceLifeMs } from './store.ts'

/** A claimed nonce is never new again, whatever happens to the file. */

const log = createLog('gateway', 'silent').log
let path: string
let store: NonceStore
/** The first generation that was reported to core: no request was accepted before it. */
let first: string | undefined
const isFirst = async (id: string) => {
  first ??= id
  return id === first
}
const open = async () => {
  store = await openFileNonces(path, isFirst, {}, log)
}
const nowSeconds = () => Math.floor(Date.now() / 1000)
const claim = (nonce: string) => store.claim('ak_1', nonce, nowSeconds())

beforeEach(async () => {
  path = join(await makeTempDir('nonce-file'), 'nonces.db')
  first = undefined
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

test('expired nonces are deleted', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'] })
  const other = join(await makeTempDir('nonce-file'), 'nonces.db')
  const file = new NonceFile({ path: other, keyRate: undefined })
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
