import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { takeBaseBackup } from '../../cli/backup/base-backup.ts'
import { restore } from '../../cli/backup/restore.ts'
import { type Postgres, startPostgres } from '../../cli/processes/postgres.ts'
import { signalProcess } from '../../cli/processes/processes.ts'
import { migrate } from '../../services/core/src/database/migrate.ts'
import { execute, query } from './database.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import { makeTempDir } from './temp.ts'
import { until } from './until.ts'

const superuserPassword = 'superuser'
const servicePassword = 'service'
const database = 'wallet'

/** A primary and its standby, with the product's schema. */
export type ReplicatedPostgres = {
  ownerUrl: string
  serviceUrl: string
  /** Core's connections: they go to the primary, and after `failOver` to the former standby. */
  toPrimary: FaultProxy
  /** The connection over which the standby receives the log of the primary. */
  replication: FaultProxy
  /** Whether the standby has all that was committed on the primary. */
  hasCaughtUp(): Promise<boolean>
  /** Sends connections to the standby, without promoting it. */
  connectToStandby(): Promise<void>
  /** Kills the primary with SIGKILL, promotes the standby, and sends connections there. */
  failOver(): Promise<void>
  /** Starts the primary that `failOver` killed, and sends all connections there. */
  connectToFormerPrimary(): Promise<void>
  stop(): Promise<void>
}

/** @param isSynchronous whether the primary waits for the standby at each commit */
export async function startReplicatedPostgres({ isSynchronous = true } = {}): Promise<ReplicatedPostgres> {
  const directory = await makeTempDir('replicated')
  const common = { port: 0, durable: false, superuserPassword }
  const dataDir = join(directory, 'primary')
  let primary = await startPostgres({ ...common, dataDir })
  await execute(primary.url('postgres'), `create database ${database}`)
  await migrate(primary.url(database), primary.url(database, 'wallet_service', servicePassword))

  const copy = join(directory, 'standby')
  const backup = join(directory, 'backup.tar')
  await takeBaseBackup(primary.url('postgres'), backup)
  await restore(backup, copy)
  await rm(backup)
  await writeFile(join(copy, 'standby.signal'), '')
  const replication = await startFaultProxy(primary.port)
  const standby = await startPostgres({
    ...common,
    dataDir: copy,
    settings: { primary_conninfo: `${replication.through(primary.url('postgres'))}?application_name=standby` },
  })
  if (isSynchronous) {
    await execute(primary.url('postgres'), `alter system set synchronous_standby_names = 'standby'`)
    await execute(primary.url('postgres'), 'select pg_reload_conf()')
  }
  const expected = isSynchronous ? 'sync' : 'async'
  await until(`the standby is ${expected}`, async () => {
    const [row] = await query(primary.url('postgres'), 'select state, sync_state from pg_stat_replication')
    return row?.state === 'streaming' && row.sync_state === expected
  })
  const toPrimary = await startFaultProxy(primary.port)
  async function connectTo({ port }: Postgres): Promise<void> {
    toPrimary.cut()
    toPrimary.pointTo(port)
    await toPrimary.restore()
  }
  return {
    ownerUrl: toPrimary.through(primary.url(database)),
    serviceUrl: toPrimary.through(primary.url(database, 'wallet_service', servicePassword)),
    toPrimary,
    replication,
    async hasCaughtUp() {
      // The end of what was inserted, because without `synchronous_commit` a commit does not wait until its record is written.
      const [row] = await query(
        primary.url('postgres'),
        'select flush_lsn = pg_current_wal_insert_lsn() as "isEqual" from pg_stat_replication',
      )
      return row?.isEqual === true
    },
    connectToStandby: () => connectTo(standby),
    async failOver() {
      signalProcess(primary.pid, 'SIGKILL')
      await primary.exited
      await execute(standby.url('postgres'), 'select pg_promote()')
      await connectTo(standby)
    },
    async connectToFormerPrimary() {
      primary = await startPostgres({ ...common, dataDir })
      await connectTo(primary)
    },
    async stop() {
      toPrimary.cut()
      replication.cut()
      await Promise.all([primary.stop(), standby.stop()])
    },
  }
}
