/** The Redis users of deploy/containers/secrets.ts have the rights that they need, and no others. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Redis, startRedis } from '../cli/processes/redis.ts'
import { batchScript } from '../gateway/src/auth/nonces/redis/scripts.ts'
import { call } from './setup/client.ts'
import { readCompose, redisSettings } from './setup/compose.ts'
import { root } from './setup/images.ts'
import { type System, startSystem } from './setup/system.ts'
import { makeTempDir } from './setup/temp.ts'
import { until } from './setup/until.ts'

const execute = promisify(execFile)

let redis: Redis
let secretsDir: string
let gatewayUrl: string
/** An administrator of Redis, for the tests only. */
let inspector: ReturnType<typeof createClient>
beforeAll(async () => {
  const directory = await makeTempDir('redis-users')
  secretsDir = join(directory, 'secrets')
  await execute(process.execPath, [join(root, 'deploy/containers/secrets.ts'), secretsDir])
  const settings = redisSettings(await readCompose(), secretsDir, await makeTempDir('redis'))
  const users = await readFile(settings.include!, 'utf8')
  const include = join(directory, 'redis.conf')
  await writeFile(include, `${users}user inspector on nopass ~* &* +@all\n`)
  redis = await startRedis({ ...settings, include })
  const url = await readFile(join(secretsDir, 'gateway/REDIS_URL'), 'utf8')
  gatewayUrl = url.replace('redis:6379', `127.0.0.1:${redis.port}`)
  await inspect()
})
afterAll(async () => {
  inspector.destroy()
  await redis.stop()
})

async function inspect(): Promise<void> {
  inspector = createClient({ url: `redis://inspector:any@127.0.0.1:${redis.port}` })
  // A test kills Redis.
  inspector.on('error', () => {})
  await inspector.connect()
}

type Command = { name: string; arity: number; flags: string[]; subcommands: Command[] }

/** All commands of this server. A command with subcommands is replaced by them. */
async function allCommands(): Promise<Command[]> {
  const read = ([name, arity, flags, , , , , , , subcommands]: unknown[]): Command => ({
    name: name as string,
    arity: arity as number,
    flags: flags as string[],
    subcommands: ((subcommands ?? []) as unknown[][]).map(read),
  })
  const infos = await inspector.sendCommand<unknown[][]>(['COMMAND', 'INFO'])
  return infos.map(read).flatMap(command => (command.subcommands.length > 0 ? command.subcommands : [command]))
}

/** The commands that a user may send, except those that need no right: AUTH, HELLO, QUIT … */
async function granted(user: string): Promise<string[]> {
  const names: string[] = []
  for (const { name, arity, flags } of await allCommands()) {
    if (flags.includes('no_auth')) continue
    const words = name.split('|')
    const fillers = Array.from({ length: Math.abs(arity) - words.length }, () => '1')
    const reply = await inspector.sendCommand<string>(['ACL', 'DRYRUN', user, ...words, ...fillers])
    if (!/no permissions to run/.test(reply)) names.push(name)
  }
  return names.sort()
}

/** The commands that Redis has run since it started, for all users. */
async function used(): Promise<string[]> {
  const stats = await inspector.info('commandstats')
  return [...stats.matchAll(/^cmdstat_(\S+?):calls=[1-9]/gm)].map(([, name]) => name!)
}

async function rejected(): Promise<unknown[]> {
  return inspector.sendCommand<unknown[]>(['ACL', 'LOG'])
}

async function serve(system: System): Promise<void> {
  await until('the gateway is ready', async () => (await fetch(`${system.baseUrl}/readyz`)).ok)
  expect((await call(system, 'GET', '/api/v1/wallets')).body.code).toBe('2000')
  const wrong = await call(system, 'GET', '/api/v1/wallets', undefined, { secret: 'wrong' })
  expect(wrong.body.code).toBe('GA2012')
}

test('a gateway uses every command that its user may send, and no other', async () => {
  const first = { nonce: randomUUID() }
  const limits = { KEY_REQUESTS_PER_SECOND: '1000', FAILED_AUTH_PER_MINUTE: '1000' }
  const system = await startSystem({ gatewayEnvironment: { REDIS_URL: gatewayUrl, ...limits } })
  try {
    await serve(system)
    expect((await call(system, 'GET', '/api/v1/wallets', undefined, first)).body.code).toBe('2000')
    // The gateway's client sends a PING every few seconds.
    await until('every command was used', async () => (await used()).includes('ping'))
    expect(await used()).toEqual(expect.arrayContaining(await granted('gateway')))
    expect(await rejected()).toEqual([])

    // The commands that a gateway sends after a restart of Redis are allowed, too. Redis has kept the nonces.
    inspector.destroy()
    await redis.restart()
    await inspect()
    await serve(system)
    expect(await rejected()).toEqual([])
    expect((await call(system, 'GET', '/api/v1/wallets', undefined, first)).body.code).toBe('GA2013')
  } finally {
    await system.stop()
  }
})

test('a gateway may send what nonces and limits need, and only to their keys', async () => {
  expect(await granted('gateway')).toEqual([
    'config|get',
    'eval',
    'evalsha',
    'exists',
    'get',
    'info',
    'ping',
    'renamenx',
    'script|load',
    'set',
    'time',
  ])
  const client = await createClient({ url: gatewayUrl }).connect()
  try {
    await client.set('limit:test', '')
    await expect(client.set('nonce:test', '')).rejects.toThrow(/NOPERM/)
    await expect(client.set('other', '')).rejects.toThrow(/NOPERM/)
    await expect(client.eval(`return redis.call('SET', KEYS[1], '')`, { keys: ['other'] })).rejects.toThrow(
      /NOPERM|ACL/,
    )
    await expect(client.flushAll()).rejects.toThrow(/NOPERM/)
    await expect(client.configSet('appendonly', 'no')).rejects.toThrow(/NOPERM/)
  } finally {
    client.destroy()
  }
})

describe('whoever has the Redis user of the gateways', () => {
  const list = '/api/v1/wallets'
  let system: System
  let attacker: ReturnType<typeof createClient>
  beforeAll(async () => {
    // The tests before this one and this one have different cores, and so different generations.
    await inspector.flushAll()
    system = await startSystem({ gatewayEnvironment: { REDIS_URL: gatewayUrl } })
    await serve(system)
    attacker = createClient({ url: gatewayUrl, disableClientInfo: true })
    await attacker.connect()
  })
  afterAll(async () => {
    attacker.destroy()
    await system.stop()
  })
  const send = (sent: { nonce: string; timestamp: string }) => call(system, 'GET', list, undefined, sent)
  const fresh = () => ({ nonce: randomUUID(), timestamp: String(Math.floor(Date.now() / 1000)) })
  /** What Redis answers to the attacker; errors are answers, too. */
  const attempt = (args: string[]) => attacker.sendCommand<unknown>(args).catch((error: Error) => error.message)
  /** A command, sent by itself and by a script that declares the keys. */
  const attemptBoth = async (args: string[]) => {
    const keys = args.filter(each => /^(nonce|limit)/.test(each))
    const script = `return redis.pcall(${args.map(each => JSON.stringify(each)).join(', ')})`
    return [await attempt(args), await attempt(['EVAL', script, String(keys.length), ...keys])]
  }

  test('can neither remove a nonce nor shorten its life, with any command', async () => {
    const sent = fresh()
    expect((await send(sent)).body.code).toBe('2000')
    const [nonce] = await inspector.keys(`nonce:*${sent.nonce}`)
    const own = 'nonces:claim:'
    const commands = [
      ['SET', nonce!, '', 'PX', '1'],
      ['SET', nonce!, '', 'XX', 'PX', '1', 'GET'],
      ['PSETEX', nonce!, '1', ''],
      ['GETSET', nonce!, ''],
      ['GETEX', nonce!, 'PX', '1'],
      ['GETDEL', nonce!],
      ['DEL', nonce!],
      ['UNLINK', nonce!],
      ['PEXPIRE', nonce!, '1'],
      ['EXPIREAT', nonce!, '1'],
      ['RENAME', nonce!, own],
      ['RENAMENX', nonce!, own],
      ['RENAMENX', nonce!, `${nonce}-moved`],
      ['RENAMENX', nonce!, 'limit:moved'],
      ['RENAME', own, nonce!],
      ['RENAMENX', own, nonce!],
      ['COPY', own, nonce!, 'REPLACE'],
      ['MOVE', nonce!, '1'],
      ['RESTORE', nonce!, '1', '', 'REPLACE'],
      ['SORT', own, 'STORE', nonce!],
      ['BITOP', 'NOT', nonce!, own],
      ['MIGRATE', '127.0.0.1', '1', nonce!, '0', '1'],
      ['MULTI'],
      ['FLUSHALL'],
      ['FLUSHDB'],
      ['SWAPDB', '0', '1'],
      ['SELECT', '1'],
      ['CONFIG', 'SET', 'maxmemory-policy', 'allkeys-random', 'maxmemory', '1'],
      ['DEBUG', 'RELOAD', 'NOSAVE'],
      ['REPLICAOF', '127.0.0.1', '1'],
      ['SHUTDOWN', 'NOSAVE'],
      ['FUNCTION', 'LOAD', "#!lua name=f\nredis.register_function('f', function() end)"],
      ['SCRIPT', 'FLUSH'],
      ['CLIENT', 'KILL', 'TYPE', 'normal'],
      ['ACL', 'SETUSER', 'gateway', '+@all'],
    ]
    for (const args of commands) {
      await attempt(['SET', own, '', 'PX', '1000'])
      const answers = await attemptBoth(args)
      // RENAMENX onto the nonce is allowed, and does nothing because the nonce exists.
      for (const answer of answers)
        expect(
          answer === 0 || /NOPERM|ACL|can't (access|run)|not allowed|nknown/.test(String(answer)),
          `${args.join(' ')}: ${answer}`,
        ).toBe(true)
      expect(await inspector.pTTL(nonce!), args.join(' ')).toBeGreaterThan(100_000)
    }
    expect((await send(sent)).body.code).toBe('GA2013')
  })

  test('cannot lock a key out for good by what it writes where requests are counted', async () => {
    const gateway = await system.startGateway({
      REDIS_URL: gatewayUrl,
      KEY_REQUESTS_PER_SECOND: '10',
      KEY_REQUESTS_BURST: '10',
    })
    const limited = { ...system, baseUrl: gateway.url }
    for (const value of ['x', '', 'nan', '-nan', 'inf', '-inf', '1e300', '9'.repeat(400)]) {
      expect(await attempt(['SET', `limit:key:${system.apiKey}`, value])).toBe('OK')
      await until(`a request is served in spite of ${value}`, async () => {
        const { code } = (await call(limited, 'GET', list)).body
        expect(['2000', 'S029'], value).toContain(code)
        return code === '2000'
      })
    }
  })

  test('cannot change what the scripts of the gateways do', async () => {
    const sent = fresh()
    expect((await send(sent)).body.code).toBe('2000')
    // Scripts of all users share one Lua environment.
    for (const script of [
      "getmetatable('').__index = function() return function() return 'L' end end",
      "string.sub = function() return 'L' end",
      'redis.call = function() return 1 end',
      'setmetatable(_G, { __index = function() return 1 end })',
    ])
      await attempt(['EVAL', script, '0'])
    expect((await send(sent)).body.code).toBe('GA2013')
    const next = fresh()
    expect((await send(next)).body.code).toBe('2000')
    expect((await send(next)).body.code).toBe('GA2013')
  })

  test('cannot make known to a server that restarted which script it ran before', async () => {
    const runId = /run_id:(\w+)/.exec(String(await attempt(['INFO'])))![1]!
    const loads = async () => Number(/cmdstat_script\|load:calls=(\d+)/.exec(await inspector.info('commandstats'))![1])
    const before = await loads()
    // A gateway knows by its unknown script that a server has restarted.
    await inspector.scriptFlush()
    expect(await attempt(['SCRIPT', 'LOAD', batchScript(runId)])).toMatch(/^[0-9a-f]{40}$/)
    expect((await send(fresh())).body.code).toBe('2000')
    expect(await loads()).toBeGreaterThan(before + 1)
  })

  test('cannot hide that nonces were lost', async () => {
    const sent = fresh()
    expect((await send(sent)).body.code).toBe('2000')
    // Everything whose name the attacker can know or find out.
    const names = ['nonces:generation:', 'nonces:claim:']
    for (const args of [['KEYS', '*'], ['SCAN', '0'], ['RANDOMKEY']])
      names.push(...[await attempt(args)].flat(2).map(String))
    const values = new Map<string, string>()
    for (const name of names) {
      const value = await attempt(['GET', name])
      if (typeof value === 'string' && !/^(NOPERM|ERR)/.test(value)) values.set(name, value)
    }
    const restore = () => Promise.all([...values].map(([name, value]) => attempt(['SET', name, value])))
    await inspector.flushAll()
    await restore()
    const restoring = setInterval(restore, 1)
    try {
      expect((await send(sent)).body.code).toBe('S002')
    } finally {
      clearInterval(restoring)
    }
  })
})

test('the user of the health check may send only PING, and nobody can log in without a password', async () => {
  expect(await granted('health')).toEqual(['ping'])
  const url = `127.0.0.1:${redis.port}`
  for (const login of ['', 'default:any@', 'health:any@', 'gateway:any@']) {
    const client = createClient({ url: `redis://${login}${url}`, socket: { reconnectStrategy: false } })
    client.on('error', () => {})
    await expect(client.connect().then(() => client.ping())).rejects.toThrow(/NOAUTH|WRONGPASS/)
    if (client.isOpen) client.destroy()
  }
  const { redis: service } = (await readCompose()).services
  const [kind, command] = service!.healthcheck!.test
  expect(kind).toBe('CMD-SHELL')
  const here = command!
    .replace('$$', '$')
    .replace('/secrets/', `${join(secretsDir, 'redis')}/`)
    .replace('redis-cli', `redis-cli -p ${redis.port}`)
  const check = () => execute('/bin/sh', ['-c', here])
  expect((await check()).stdout).toBe('PONG\n')
  inspector.destroy()
  await redis.kill()
  await expect(check()).rejects.toMatchObject({ code: 1 })
  await redis.restart()
  await inspect()
})

test('whoever cannot log in fills neither the memory of Redis nor closes connections of others', async () => {
  // As much of a request as Redis takes from a client that has not logged in.
  const argument = `$16384\r\n${'x'.repeat(16_384)}\r\n`
  const request = `*10\r\n${argument.repeat(9)}$16384\r\n${'x'.repeat(16_000)}`
  const sockets: Socket[] = []
  // A connection that is closed is not opened again.
  const client = await createClient({ url: gatewayUrl, socket: { reconnectStrategy: false } }).connect()
  try {
    for (let count = 0; count < 3_500; count++) {
      const socket = connect(redis.port, '127.0.0.1').on('error', () => {})
      sockets.push(socket)
      await new Promise(resolve => socket.once('connect', () => socket.write(request, resolve)).once('close', resolve))
    }
    // Redis takes 16 KiB of each of them in a turn.
    for (let turn = 0; turn < 100; turn++) await client.set('limit:test', '')
    expect(Number(/used_memory:(\d+)/.exec(await inspector.info('memory'))![1])).toBeLessThan(256 * 2 ** 20)
  } finally {
    for (const socket of sockets) socket.destroy()
    client.destroy()
  }
})
