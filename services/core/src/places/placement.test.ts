import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, query } from '../../../../test/setup/database.ts'
import { type FaultProxy, startFaultProxy } from '../../../../test/setup/fault-proxy.ts'
import { until } from '../../../../test/setup/until.ts'

/** A database with tables like those in which Citus keeps where a schema is. Its two nodes are this server and a proxy before it. */
let core: TestCore
let proxy: FaultProxy

const metadata = (host: string, port: string) => `
  set allow_system_table_mods = on;
  create table pg_catalog.pg_dist_shard (logicalrelid oid, shardid bigint);
  create table pg_catalog.pg_dist_placement (shardid bigint, groupid integer);
  create table pg_catalog.pg_dist_node (groupid integer, nodename text, nodeport integer, noderole text);
  grant select on pg_catalog.pg_dist_shard, pg_catalog.pg_dist_placement, pg_catalog.pg_dist_node to public;
  insert into pg_catalog.pg_dist_shard select oid, 1 from pg_class where relname = 'ledger' and relkind = 'r';
  insert into pg_catalog.pg_dist_placement values (1, 1);
  insert into pg_catalog.pg_dist_node values (1, '${host}', ${port}, 'primary'), (2, '127.0.0.1', ${proxy.port}, 'primary')`

beforeAll(async () => {
  core = await openTestCore({
    async prepare({ ownerUrl }) {
      const { hostname, port } = new URL(ownerUrl)
      proxy = await startFaultProxy(Number(port))
      await query(ownerUrl, metadata(hostname, port))
    },
  })
})
afterAll(async () => {
  await core.close()
  proxy.cut()
})

const portNow = () => new URL(core.core.databaseUrl).port

test('connections follow a place to another node, and a statement that runs on the former one ends there', async () => {
  const { reads } = core.core
  const { ownerUrl } = core.database
  expect(portNow()).toBe(new URL(ownerUrl).port)
  const blocker = await connect(ownerUrl)
  await blocker.query('select pg_advisory_lock(1)')
  const running = reads.query('select pg_advisory_xact_lock(1)')
  await blocker.query('update pg_catalog.pg_dist_placement set groupid = 2')
  await until('core uses the other node', async () => portNow() === String(proxy.port))
  await blocker.end()
  expect((await running).rowCount).toBe(1)
  const client = await reads.connect()
  expect((client as unknown as { port: number }).port).toBe(proxy.port)
  client.release()
})
