/**
 * The cost of the gateway: signed balance requests, which read PostgreSQL, compared with an Express hello; and the gateway
 * compared with nginx whose Lua makes the same checks, both with an upstream that answers from memory.
 */
import { randomBytes } from 'node:crypto'
import { mintKeyId } from '@workspace-wallet/runtime'
import type { Program } from '../../../cli/processes/program.ts'
import { sayWithin } from '../../../cli/processes/say.ts'
import type { LoadPlan } from '../load/plan.ts'
import { noCpuTimes, type Watched } from '../measure/cpu.ts'
import { figuresOf, tableOf } from '../measure/figures.ts'
import type { Findings } from '../measure/report.ts'
import { type Contenders, inRounds, ratiosOf } from '../measure/rounds.ts'
import type { Settings } from '../measure/settings.ts'
import { type Run, startLoadProcess } from '../testbed/load-process.ts'
import { type Nginx, startNginx } from '../testbed/nginx.ts'
import { makeSigner, type Testbed } from '../testbed/testbed.ts'

const say = sayWithin('edge')
const connections = 64
const wallets = 100

export async function measureEdge(testbed: Testbed, { rounds, warmUpMs, measureMs }: Settings): Promise<Findings> {
  const service = await testbed.startService(await testbed.createDatabase('bench_edge'))
  const signer = await makeSigner(service.admin, wallets)
  const hello = await testbed.start('tools/bench/testbed/servers/hello.ts', { NODE_ENV: 'production' })

  const memorySigner = {
    ...signer,
    apiKey: mintKeyId('bench'),
    apiSecret: randomBytes(32).toString('base64url'),
  }
  const { keyEncryptionKeys } = testbed
  const upstream = await testbed.start('tools/bench/testbed/servers/upstream.ts', {
    API_KEY: memorySigner.apiKey,
    API_SECRET: memorySigner.apiSecret,
    KEY_ENCRYPTION_KEYS: keyEncryptionKeys,
  })
  const gateway = await testbed.startGateway([upstream.url])
  const nginx = await startNginx(testbed, memorySigner, upstream.port).catch((error: Error) => error)

  const load = startLoadProcess()
  const run = (port: number, plan: Pick<LoadPlan, 'kind' | 'signers' | 'target'>, watched: Watched) =>
    load.run({ host: '127.0.0.1', ports: [port], connections, warmUpMs, measureMs, ...plan }, watched)
  const plain = { kind: 'plain', target: '/', signers: [memorySigner] } as const
  const signed = { kind: 'balance', signers: [memorySigner] } as const
  const balance = { kind: 'balance', signers: [signer] } as const
  const pids = { upstream: pidOf(upstream), redis: testbed.redis.pid() }
  const pidsOfService = {
    gateway: pidOf(service.gateway),
    core: pidOf(service.core),
    postgres: testbed.postgres.pid,
    redis: testbed.redis.pid(),
  }
  const contenders: Contenders<Run> = {
    balance: () => run(service.gateway.port, balance, pidsOfService),
    hello: () => run(hello.port, plain, { hello: pidOf(hello) }),
    gateway: () => run(gateway.port, signed, { gateway: pidOf(gateway), ...pids }),
  }
  if (!(nginx instanceof Error)) contenders.nginx = () => run(nginx.port, signed, { nginx: nginx.pid, ...pids })
  const samples = await inRounds(contenders, rounds, say).finally(() => {
    load.stop()
    return stopAll([nginx, gateway, upstream, hello, service.gateway, service.core])
  })

  const findings = findingsOf(samples)
  if (nginx instanceof Error)
    findings.missing = { gateway_vs_nginx: nginx.message, gateway_cpu_vs_nginx: nginx.message }
  return findings
}

async function stopAll(programs: (Nginx | Error | { stop(): Promise<unknown> })[]): Promise<void> {
  for (const program of programs) if (!(program instanceof Error)) await program.stop()
}

function findingsOf(samples: Record<string, Run[]>): Findings {
  const rates = (name: string) => samples[name]!.map(({ perSecond }) => perSecond)
  const costs = (name: string) => samples[name]!.flatMap(({ cpuMicros }) => cpuMicros?.[name] ?? [])
  const edge = figuresOf(samples)
  const findings: Findings = {
    ratios: { balance_vs_express: ratiosOf(rates('balance'), rates('hello')) },
    figures: { edge },
    tables: [tableOf('edge', edge)],
  }
  if (!samples.nginx) return findings
  findings.ratios.gateway_vs_nginx = ratiosOf(rates('gateway'), rates('nginx'))
  if (costs('nginx').length > 0) findings.ratios.gateway_cpu_vs_nginx = ratiosOf(costs('gateway'), costs('nginx'))
  else findings.missing = { gateway_cpu_vs_nginx: noCpuTimes }
  return findings
}

function pidOf({ process }: Program): number {
  return process.pid!
}
