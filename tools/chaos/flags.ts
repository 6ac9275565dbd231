/** The options of `npm run chaos`. */
import { anyText } from '../../cli/command-line/flags.ts'
import { parseRedisKind } from './redis-failover.ts'
import { defaultPauseMs } from './traffic.ts'

export const flags = {
  ha: { help: 'with a cluster of PostgreSQL (Patroni and etcd), and its faults' },
  asynchronous: { help: 'with --ha: no commit waits for a standby; only count the transfers that failovers lose' },
  chart: {
    value: 'FILE',
    help: 'also draw latency, memory, size of the database and lag of webhooks over time, as SVG',
    parse: anyText,
  },
  json: { value: 'FILE', help: 'also write the figures to this file', parse: anyText },
  minutes: { value: 'N', help: 'inject faults for N minutes', default: '3', parse: parseMinutes },
  redis: { value: 'KIND', help: 'only fail over Redis: sentinel or cluster', parse: parseRedisKind },
  pause: {
    value: 'MS',
    help: 'longest pause of each of the 48 clients between two tasks, in milliseconds',
    default: String(defaultPauseMs),
    parse: parsePause,
  },
  seed: { value: 'N', help: 'seed of the random faults; the same seed gives the same faults', parse: parseSeed },
} as const

function parseMinutes(text: string): number {
  const minutes = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || minutes <= 0 || minutes > 10_000)
    throw new Error('must be a number of minutes above 0, such as 3 or 0.5')
  return minutes
}

function parsePause(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new Error('must be a whole number from 1 to 99999')
  return Number(text)
}

export function randomSeed(): number {
  return Math.floor(Math.random() * 2 ** 32)
}

function parseSeed(text: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) >= 2 ** 32) throw new Error('must be a whole number below 4294967296')
  return Number(text)
}
