/** Somebody with the role of the service holds locks, or changes the settings of the role. Core must not need help to recover. */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, query } from '../../cli/processes/database.ts'
import type { Random } from '../../cli/processes/random.ts'
import type { Fault } from './parts/fault.ts'
import type { Testbed } from './testbed.ts'

const withinMs = 60_000
const pollMs = 20

/** Each locks something that transfers or deliveries need. */
const locks = {
  ledgers: 'select from lock_ledgers(array(select workspace_id from ledger))',
  webhooks: 'select from webhook for update',
  keys: 'update api_key set last_used_at = last_used_at',
} as const

/** A session locks rows and does not end its transaction. Core must end it. */
export function holdLocks({ serviceUrl }: Testbed, random: Random): Fault {
  const what = random.pick(Object.keys(locks) as (keyof typeof locks)[])
  return {
    kind: 'hold locks',
    what: `a session locks ${what}`,
    async inject() {
      const session = await connect(serviceUrl)
      session.on('error', () => {})
      let hasEnded = false
      session.once('end', () => {
        hasEnded = true
      })
      await session.query(`begin; ${locks[what]}`)
      await until(`core ends the session that locks ${what}`, async () => hasEnded)
      return { isOver: async () => true }
    },
  }
}

/** Values that would make core fail, or read something else. */
const settings: Record<string, string> = {
  array_nulls: 'off',
  bytea_output: 'escape',
  datestyle: 'German',
  enable_indexscan: 'off',
  extra_float_digits: '-15',
  local_preload_libraries: 'nowhere',
  lock_timeout: '1ms',
  statement_timeout: '1ms',
  timezone: 'Asia/Kathmandu',
}

/** The role changes the defaults of its sessions, and ends those of core, which open again. */
export function changeSettings({ serviceUrl, ownerUrl }: Testbed, random: Random): Fault {
  const [name, value] = random.pick(Object.entries(settings))
  return {
    kind: 'change a setting',
    what: `${name} = ${value} for the service's role`,
    async inject() {
      const role = await connect(serviceUrl)
      try {
        await role.query(`alter role wallet_service set ${name} = '${value}'`)
        await role.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'wallet_service' and pid <> pg_backend_pid()`,
        )
        const { rows } = await role.query('select clock_timestamp()::text as now')
        await until('core has opened sessions', async () => {
          const opened = await query(
            ownerUrl,
            `select from pg_stat_activity where usename = 'wallet_service' and backend_start > $1::timestamptz`,
            [rows[0].now],
          )
          return opened.length > 0
        })
      } finally {
        await role.end()
        // Otherwise the verification at the end reports it.
        await query(ownerUrl, `alter role wallet_service reset ${name}`)
      }
      return { isOver: async () => true }
    },
  }
}

async function until(what: string, ask: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs / 1000} s in vain until ${what}`)
    await sleep(pollMs)
  }
}
