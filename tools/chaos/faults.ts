/** The faults, and the random order in which they are injected. */
import { setTimeout as sleep } from 'node:timers/promises'
import { stopTimeoutMs } from '../../cli/processes/child.ts'
import { describeProcess, familyOf, signalProcess } from '../../cli/processes/processes.ts'
import type { Random } from '../../cli/processes/random.ts'
import { sayWithin } from '../../cli/processes/say.ts'
import { type Outcomes, sendElementBombs, sendSlowBodies, sendTinyChunks } from './attacks.ts'
import { forgedWebhook } from './forged-webhook.ts'
import type { Fault } from './parts/fault.ts'
import { freeze, type Part, thaw } from './parts/parts.ts'
import { changeSettings, holdLocks } from './role-attacks.ts'
import type { Testbed } from './testbed.ts'

const say = sayWithin('chaos')
/** Longer than the deadline of any caller. */
const longFreezeMs = 13_000

/**
 * Each kind of fault once, on a random part of its kind, in random order.
 *
 * @param apiKey what attackers know of a client: the ID of its key, and not the secret
 */
export function roundOf(testbed: Testbed, apiKey: string, random: Random): Fault[] {
  const { parts } = testbed
  const one = (kind: Part['kind']) => random.pick(parts.filter(part => part.kind === kind))
  const kinds = ['core', 'courier', 'gateway', 'PostgreSQL', 'Redis'] as const
  const some = (count: number) => random.shuffled(parts).slice(0, count)
  const faults: Fault[][] = [
    ...kinds.map(kind => [kill(one(kind))]),
    [killBackend(one('PostgreSQL'), random)],
    ...kinds.map(kind => [freezeFor(one(kind), freezeMs(random))]),
    [freezeLong(one(random.pick(kinds)))],
    [forgedWebhook(testbed)],
    [holdLocks(testbed, random)],
    [changeSettings(testbed, random)],
    // A rolling restart.
    ['gateway-1', 'gateway-2', 'courier-1', 'courier-2', 'core-1', 'core-2', 'Redis', 'PostgreSQL'].map(name =>
      restart(parts.find(part => part.name === name)!),
    ),
    [
      together(
        some(2 + random.int(3)).map(part => (random.chance(0.5) ? kill(part) : freezeFor(part, freezeMs(random)))),
      ),
    ],
    [{ ...together(parts.map(kill)), kind: 'kill everything' }],
    ...attacks(testbed, apiKey, random).map(each => [each]),
  ]
  return random.shuffled(faults).flat()
}

/** Requests that are made to be expensive, on a random gateway or core. */
function attacks({ gatewayUrls, coreUrls, courierToken }: Testbed, apiKey: string, random: Random): Fault[] {
  const target = { baseUrl: random.pick(gatewayUrls), apiKey }
  const coreUrl = random.pick(coreUrls)
  const attack = (kind: string, what: string, send: () => Promise<Outcomes>): Fault => ({
    kind,
    what,
    async inject() {
      await send()
      return { isOver: async () => true }
    },
  })
  return [
    attack('tiny chunks', 'bodies in chunks of a byte', () =>
      sendTinyChunks(target, { connections: 40, bytes: 260_000 }),
    ),
    attack('slow bodies', 'bodies without an end', () => sendSlowBodies(target, { connections: 800, bytes: 262_144 })),
    attack('element bombs', 'bodies of empty maps', () =>
      sendElementBombs(coreUrl, courierToken, { connections: 20, bytes: 16 * 2 ** 20 }),
    ),
  ]
}

function freezeMs(random: Random): number {
  return 1_000 + random.int(4_000)
}

function kill(part: Part): Fault {
  return {
    kind: `kill ${part.kind}`,
    what: `kill -9 ${part.name}`,
    inject: () => signal(part, 'SIGKILL'),
  }
}

function restart(part: Part): Fault {
  return {
    kind: `restart ${part.kind}`,
    what: `${part.stopSignal} to ${part.name}`,
    async inject() {
      const pid = part.pid()
      const { isOver } = await signal(part, part.stopSignal)
      const killing = setTimeout(() => {
        say(`${part.name} did not end within ${stopTimeoutMs / 1000} s of ${part.stopSignal}, and is killed`)
        signalProcess(pid, 'SIGKILL')
      }, stopTimeoutMs)
      return {
        async isOver() {
          if (!(await isOver())) return false
          clearTimeout(killing)
          return true
        },
      }
    },
  }
}

async function signal(part: Part, name: NodeJS.Signals) {
  const pid = part.pid()
  signalProcess(pid, name)
  return { isOver: async () => part.pid() !== pid }
}

/** PostgreSQL then ends all other backends, and recovers. */
function killBackend(part: Part, random: Random): Fault {
  return {
    kind: 'kill a backend',
    what: 'kill -9 a backend of PostgreSQL',
    async inject() {
      const backends: number[] = []
      for (const pid of await familyOf(part.pid()))
        if ((await describeProcess(pid))?.command.includes(' wallet_service ')) backends.push(pid)
      if (backends.length > 0) signalProcess(random.pick(backends), 'SIGKILL')
      return {
        isOver: async () => (await Promise.all(backends.map(describeProcess))).every(each => each === undefined),
      }
    },
  }
}

function freezeFor(part: Part, milliseconds: number): Fault {
  return {
    kind: `freeze ${part.kind}`,
    what: `freeze ${part.name} for ${(milliseconds / 1000).toFixed(1)} s`,
    async inject() {
      await freeze(part)
      await sleep(milliseconds)
      await thaw(part)
      return { isOver: async () => true }
    },
  }
}

function freezeLong(part: Part): Fault {
  return { ...freezeFor(part, longFreezeMs), kind: 'freeze long' }
}

function together(faults: Fault[]): Fault {
  return {
    kind: 'several at once',
    what: faults.map(({ what }) => what).join(', '),
    async inject() {
      const injected = await Promise.all(faults.map(fault => fault.inject()))
      return { isOver: async () => (await Promise.all(injected.map(each => each.isOver()))).every(Boolean) }
    },
  }
}
