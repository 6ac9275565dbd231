/**
 * Signed reads (a balance, one order, the first page of orders) over 1 and 16 connections, beside the same reads of a service
 * that a team could write instead. Both workspaces have the same number of orders.
 */
import { createWalletClient } from '@workspace-wallet/client'
import { sayWithin } from '../../../cli/processes/say.ts'
import { figuresOf, tableOf } from '../measure/figures.ts'
import type { Findings } from '../measure/report.ts'
import { type Contenders, inRounds, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { type Run, startLoadProcess } from '../testbed/load-process.ts'
import { type Peer, peerNames, startPeers } from '../testbed/peers.ts'
import type { Testbed } from '../testbed/testbed.ts'

const say = sayWithin('reads')
const connectionCounts = [1, 16]
const orders = 1_000

const targets = {
  balance: '/api/v1/wallets/@wallet@/balance',
  order: '/api/v1/transfer/query/orders/order-1',
  page: '/api/v1/transfer/query/orders',
}

export async function measureReads(testbed: Testbed, { rounds, warmUpMs, measureMs }: Settings): Promise<Findings> {
  const peers = await startPeers(testbed, 'bench_reads', 1)
  say(`making ${orders} orders`)
  for (const peer of Object.values(peers)) await makeOrders(peer)
  const load = startLoadProcess()
  const contenders: Contenders<Run> = {}
  for (const [read, target] of Object.entries(targets))
    for (const connections of connectionCounts)
      for (const name of peerNames)
        contenders[`${read}, ${name} ${connections}`] = () => {
          const { port, signers, watched } = peers[name]
          const plan = { host: '127.0.0.1', ports: [port], connections, warmUpMs, measureMs, signers, target }
          return load.run({ ...plan, kind: 'get' }, watched)
        }
  const samples = await inRounds(contenders, rounds, say)
  load.stop()
  for (const { stop } of Object.values(peers)) await stop()

  const p50 = (name: string) => samples[name]!.map(({ latencyMs }) => latencyMs.p50)
  const ratios: Findings['ratios'] = {}
  for (const read of Object.keys(targets))
    for (const connections of connectionCounts)
      ratios[`${read}_p50_c${connections}_vs_transaction`] = ratiosOf(
        p50(`${read}, service ${connections}`),
        p50(`${read}, transaction ${connections}`),
      )
  const figures = figuresOf(samples)
  return { ratios, figures: { reads: figures }, tables: [tableOf('reads', figures)] }
}

/** In small groups, so that no request waits for long. */
async function makeOrders({ port, signers }: Peer): Promise<void> {
  const { apiKey, apiSecret, wallets } = signers[0]!
  const client = createWalletClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey, apiSecret })
  const [sourceWalletId, targetWalletId] = wallets as [string, string]
  for (let first = 1; first <= orders; first += 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        client.transfers.create({
          sourceWalletId,
          targetWalletId,
          amount: '0.01',
          currency: 'USD',
          bizId: `order-${first + at}`,
        }),
      ),
    )
}
