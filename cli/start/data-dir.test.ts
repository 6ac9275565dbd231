import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { chmod, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { makeTempDir } from '../../test/setup/temp.ts'
import { until } from '../../test/setup/until.ts'
import { keepRotated, openLog, rotateLog } from '../processes/logs.ts'
import { takeLock } from './lock.ts'
import { loadSecrets } from './secrets.ts'

let dataDir: string

beforeEach(async () => {
  dataDir = await makeTempDir('data-dir')
})

describe('the lock', () => {
  test('is held by one process at a time, and released when that process is killed', async () => {
    const path = join(dataDir, 'lock')
    const module = fileURLToPath(new URL('./lock.ts', import.meta.url))
    const program = `
      const { takeLock } = await import(${JSON.stringify(module)})
      globalThis.lock = takeLock(${JSON.stringify(path)})
      setInterval(() => {}, 1e6)
      process.send(lock !== undefined)`
    const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    expect((await once(holder, 'message'))[0]).toBe(true)
    expect(takeLock(path)).toBe(undefined)
    holder.kill('SIGKILL')
    const lock = await until('the lock is free', () => takeLock(path))
    expect(await readdir(dataDir)).toEqual(['lock'])
    lock.release()
  })

  test('can be taken again after it was released', () => {
    const path = join(dataDir, 'lock')
    takeLock(path)!.release()
    const again = takeLock(path)
    expect(again).toBeDefined()
    again?.release()
  })
})

describe('the secrets', () => {
  const databaseDir = () => join(dataDir, 'postgres')

  test('are created once, kept, and readable by their owner only', async () => {
    const first = await loadSecrets(dataDir, databaseDir())
    expect(await loadSecrets(dataDir, databaseDir())).toEqual(first)
    expect((await stat(join(dataDir, 'secrets.json'))).mode & 0o777).toBe(0o600)
    expect(await readdir(dataDir)).toEqual(['secrets.json'])
  })

  test('have the strength and the format that core requires', async () => {
    const secrets = await loadSecrets(dataDir, databaseDir())
    const bytes = (text: string) => Buffer.from(text, 'base64').length
    expect(secrets.keyEncryptionKeys).toMatch(/^k1:/)
    expect(bytes(secrets.keyEncryptionKeys.slice(3))).toBe(32)
    expect(bytes(secrets.ledgerChainKey)).toBe(32)
    expect(secrets.receiptKeys).toMatch(/^r1:/)
    expect(bytes(secrets.receiptKeys.slice(3))).toBe(32)
    const tokens = [
      secrets.gatewayToken,
      secrets.serviceToken,
      secrets.fundingToken,
      secrets.courierToken,
      secrets.adminToken,
    ]
    expect(new Set(tokens).size).toBe(tokens.length)
    for (const token of tokens) {
      expect(token).toMatch(/^[\w-]+$/)
      expect(bytes(token)).toBe(32)
    }
  })

  test('that other users could read become private again', async () => {
    await loadSecrets(dataDir, databaseDir())
    await chmod(join(dataDir, 'secrets.json'), 0o644)
    await loadSecrets(dataDir, databaseDir())
    expect((await stat(join(dataDir, 'secrets.json'))).mode & 0o777).toBe(0o600)
  })

  test('are not replaced while their database exists', async () => {
    await loadSecrets(dataDir, databaseDir())
    await mkdir(databaseDir())
    await writeFile(join(databaseDir(), 'PG_VERSION'), '18\n')
    await rm(join(dataDir, 'secrets.json'))
    await expect(loadSecrets(dataDir, databaseDir())).rejects.toThrow(/secrets.json is missing, but .* restore/)
  })

  test('that are damaged or incomplete are not replaced', async () => {
    const path = join(dataDir, 'secrets.json')
    for (const [content, complaint] of [
      ['{"superuserPassword": "x', /is damaged/],
      ['{"superuserPassword": "x"}', /lacks servicePassword/],
    ] as const) {
      await writeFile(path, content)
      await expect(loadSecrets(dataDir, databaseDir())).rejects.toThrow(complaint)
      expect(await readFile(path, 'utf8')).toBe(content)
    }
  })
})

describe('a log', () => {
  test('that is full is rotated at the next start, and three old ones are kept', async () => {
    const path = join(dataDir, 'core.log')
    for (const content of ['1', '2', '3', '4', '5']) {
      await rotateLog(path)
      await writeFile(path, content.repeat(10 * 1024 * 1024))
    }
    await rotateLog(path)
    await writeFile(path, 'small')
    await rotateLog(path)
    expect((await readdir(dataDir)).sort()).toEqual(['core.log', 'core.log.1', 'core.log.2', 'core.log.3'])
    const startOf = async (name: string) => (await readFile(join(dataDir, name), 'utf8')).slice(0, 5)
    expect(await startOf('core.log')).toBe('small')
    expect(await startOf('core.log.1')).toBe('55555')
    expect(await startOf('core.log.3')).toBe('33333')
  })

  test('loses nothing that is written during its rotation', async () => {
    const path = join(dataDir, 'core.log')
    await writeFile(path, `${'x'.repeat(10 * 1024 * 1024)}\n`)
    const writer = await open(path, 'a')
    let isRotated = false
    const rotating = rotateLog(path).then(() => {
      isRotated = true
    })
    let lines = 0
    while (!isRotated) {
      writeSync(writer.fd, `line ${lines++}\n`)
      await new Promise(setImmediate)
    }
    await rotating
    await writer.appendFile('the last line\n')
    await writer.close()
    const both = `${await readFile(`${path}.1`, 'utf8')}${await readFile(path, 'utf8')}`
    const expected = [...Array.from({ length: lines }, (_, index) => `line ${index}`), 'the last line']
    expect(both.trimEnd().split('\n').slice(1)).toEqual(expected)
    expect((await stat(`${path}.1`)).mode & 0o777).toBe((await stat(path)).mode & 0o777)
  })

  test('is rotated while it is written, and then quoted from its new beginning', async () => {
    const path = join(dataDir, 'core.log')
    await writeFile(path, 'x'.repeat(10 * 1024 * 1024))
    const log = await openLog(path)
    const rotation = keepRotated([path])
    await until('the log is rotated', async () => (await stat(path)).size === 0)
    await rotation.end()
    await writeFile(path, 'why it did not start\n', { flag: 'a' })
    expect(await log.tail()).toBe('why it did not start')
    await log.close()
  })

  test('quotes what was written since it was opened, at most fifteen lines', async () => {
    const path = join(dataDir, 'core.log')
    await writeFile(path, 'from the start before\n')
    const log = await openLog(path)
    expect(await log.tail()).toBe('')
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`)
    await writeFile(path, `${lines.join('\n')}\n`, { flag: 'a' })
    expect(await log.tail()).toBe(lines.slice(5).join('\n'))
    await log.close()
  })
})
