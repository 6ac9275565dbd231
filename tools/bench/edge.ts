/**
 * The cost of the gateway: signed balance requests, which read PostgreSQL, compared with an Express hello; and the gateway
 * compared with nginx whose Lua makes the same checks, both with an upstream that answers from memory.
 */
import { randomBytes } from 'node:crypto'
import { mintKeyId } from '@workspace-wallet/runtime'
import type { Program } from '../services/program.ts'
import { sayWithin } from '../services/say.ts'
import type { Watched } from './cpu.ts'
import { figuresOf, tableOf } from './figures.ts'
import type { LoadPlan } from './load.ts'
import { type Run, startLoadProcess } from './load-process.ts'
import { type Nginx, startNginx } from './nginx.ts'
import type { Findings } from './report.ts'
import { type Contenders, inRounds, ratioOf } from './rounds.ts'
import type { Settings } from './settings.ts'
import { makeSigner, type Testbed } from './testbed.ts'

const say = sayWithin('edge')
const connections = 64
const wallets = 100

export async function measureEdge(testbed: Testbed, { rounds, warmUpMs, measureMs }: Settings): Promise<Findings> {
  const service = await testbed.startService(await testbed.createDatabase('bench_edge'))
  const signer = await makeSigner(service.admin, wallets)
  const hello = await testbed.start('tools/bench/servers/hello.ts', { NODE_ENV: 'production' })

  const memorySigner = {
    ...signer,
    apiKey: mintKeyId('bench'),
    apiSecret: randomBytes(32).toString('base64url'),
  }
  const { keyEncryptionKeys } = testbed
  const upstream = await testbed.start('tools/bench/servers/upstream.ts', {
    API_KEY: memorySigner.apiKey,
    API_SECRET: memorySigner.apiSecret,
    KEY_ENCRYPTION_KEYS: keyEncryptionKeys,
  })
  const gateway = await testbed.startGateway(upstream.url)
  const nginx = await startNginx(testbed, memorySigner, upstream.port).catch((error: Error) => error)

  const load = startLoadProcess()
  const run = (port: number, plan: Pick<LoadPlan, 'kind' | 'signers' | 'target' | 'connections'>, watched: Watched) =>
    load.run({ host: '127.0.0.1', port, warmUpMs, measureMs, ...plan }, watched)
  const plain = { kind: 'plain', target: '/', signers: [memorySigner] } as const
  const signed = { kind: 'balance', signers: [memorySigner] } as const
  const balance = { kind: 'balance', signers: [signer], connections } as const
  const pids = { hello: pidOf(hello), gateway: pidOf(gateway), upstream: pidOf(upstream), redis: testbed.redis.pid() }
  const pidsOfService = {
    gateway: pidOf(service.gateway),
    core: pidOf(service.core),
    postgres: testbed.postgres.pid,
    redis: testbed.redis.pid(),
  }
  const contenders: Contenders<Run> = {
    balance: () => run(service.gateway.port, balance, pidsOfService),
    hello: () => run(hello.port, { ...plain, connections }, pids),
    gateway: () => run(gateway.port, { ...signed, connections }, pids),
    'gateway, one connection': () => run(gateway.port, { ...signed, connections: 1 }, pids),
    'upstream, one connection': () => run(upstream.port, { ...plain, connections: 1 }, pids),
  }
  if (!(nginx instanceof Error)) {
    const watched = { ...pids, nginx: nginx.pid }
    contenders.nginx = () => run(nginx.port, { ...signed, connections }, watched)
    contenders['nginx, one connection'] = () => run(nginx.port, { ...signed, connections: 1 }, watched)
  }
  const samples = await inRounds(contenders, rounds, say)
  load.stop()
  await stopAll([nginx, gateway, upstream, hello, service.gateway, service.core])

  const findings = findingsOf(samples)
  if (nginx instanceof Error) findings.missing = { gateway_vs_nginx: nginx.message, added_p50_vs_nginx: nginx.message }
  return findings
}

async function stopAll(programs: (Nginx | Error | { stop(): Promise<unknown> })[]): Promise<void> {
  for (const program of programs) if (!(program instanceof Error)) await program.stop()
}

function findingsOf(samples: Record<string, Run[]>): Findings {
  const rates = (name: string) => samples[name]!.map(({ perSecond }) => perSecond)
  const ratios: Record<string, number> = { balance_vs_express: ratioOf(rates('balance'), rates('hello')) }
  if (samples.nginx) {
    const upstream = samples['upstream, one connection']!
    const added = (name: string) =>
      samples[`${name}, one connection`]!.map(({ latencyMs }, round) => latencyMs.p50 - upstream[round]!.latencyMs.p50)
    ratios.gateway_vs_nginx = ratioOf(rates('gateway'), rates('nginx'))
    ratios.added_p50_vs_nginx = ratioOf(added('gateway'), added('nginx'))
  }
  const edge = figuresOf(samples)
  return { ratios, figures: { edge }, tables: [tableOf('edge', edge)] }
}

function pidOf({ process }: Program): number {
  return process.pid!
}
