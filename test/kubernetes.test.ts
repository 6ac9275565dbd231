/** Checks the manifests of deploy/kubernetes as far as possible without a cluster. */
import { execFile } from 'node:child_process'
import { readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as apps from 'kubernetes-models/apps/v1'
import * as autoscaling from 'kubernetes-models/autoscaling/v2'
import * as batch from 'kubernetes-models/batch/v1'
import * as networking from 'kubernetes-models/networking.k8s.io/v1'
import * as policy from 'kubernetes-models/policy/v1'
import * as v1 from 'kubernetes-models/v1'
import { beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { findProgram } from '../cli/processes/programs.ts'
import { gatewaySchema } from '../gateway/src/config.ts'
import { coreSchema, migrationSchema } from '../services/core/src/config.ts'
import { courierSchema } from '../services/courier/src/config.ts'
import { attemptReserveMs } from '../services/courier/src/deliver.ts'
import { root } from './setup/images.ts'
import { makeTempDir } from './setup/temp.ts'

type Model = new (resource: object) => { validate(): void }
const models: Record<string, object> = {
  'apps/v1': apps,
  'autoscaling/v2': autoscaling,
  'batch/v1': batch,
  'networking.k8s.io/v1': networking,
  'policy/v1': policy,
  v1,
}

const execute = promisify(execFile)
const schemas: Record<string, z.ZodObject> = {
  core: coreSchema,
  courier: courierSchema,
  gateway: gatewaySchema,
  migrate: migrationSchema,
  // What `npm run admin` needs.
  checkpoints: z.object({ CORE_URL: z.string(), CORE_TOKEN: z.string() }),
}

// biome-ignore lint/suspicious/noExplicitAny: the schema of Kubernetes is checked below
type Resource = { apiVersion: string; kind: string; metadata: any; spec: any }

let base: Resource[]
let production: Resource[]
beforeAll(async () => {
  const kubectl = await findProgram(['kubectl'], 'kubernetes-client')
  const build = async (folder: string): Promise<Resource[]> => {
    const { stdout } = await execute(kubectl, ['kustomize', join(root, 'deploy/kubernetes', folder)])
    return parseAllDocuments(stdout).map(document => document.toJS())
  }
  base = await build('base')
  production = await build('overlays/production')
}, 300_000)

const nameOf = ({ kind, metadata }: Resource) => `${kind} ${metadata.name}`
const templateOf = ({ spec }: Resource) => spec.template ?? spec.jobTemplate?.spec.template
const workloads = () => base.filter(templateOf)
const containerOf = (workload: Resource) => templateOf(workload).spec.containers[0]
/** Those that run once, and have no probes. */
const ending = ['checkpoints', 'migrate']
const programOf = (workload: Resource): string => containerOf(workload).name

test('every resource matches the schema of Kubernetes, without fields that it does not have', async () => {
  const directory = await makeTempDir('kubernetes')
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'))
  const typed: string[] = []
  for (const resource of [...base, ...production]) {
    const { [resource.kind]: Model } = models[resource.apiVersion] as Record<string, Model>
    expect(() => new Model!(resource).validate(), nameOf(resource)).not.toThrow()
    const type = `import('kubernetes-models/${resource.apiVersion}').I${resource.kind}`
    typed.push(`export const r${typed.length}: ${type} = ${JSON.stringify(resource, null, 1)}`)
  }
  // The types, unlike the schemas, reject unknown fields.
  await writeFile(join(directory, 'resources.ts'), typed.join('\n'))
  const compilerOptions = { module: 'nodenext', strict: true, noEmit: true, skipLibCheck: true, types: [] }
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['resources.ts'] }))
  const compile = () => execute(join(root, 'node_modules/.bin/tsc'), ['-p', directory]).catch(error => error)
  expect((await compile()).stdout).toBe('')
  const wrong = typed.join('\n').replace('"minReplicas"', '"minimumReplicas"')
  await writeFile(join(directory, 'resources.ts'), wrong)
  expect((await compile()).stdout).toContain('minimumReplicas')
})

test('the overlay changes only the namespace, images, networks, resources and numbers of pods', () => {
  expect(production.map(nameOf).sort()).toEqual(base.map(nameOf).sort())
  for (const { metadata } of production) expect(metadata.namespace).toBe('wallet')
  const images = production.filter(templateOf).map(workload => containerOf(workload).image)
  for (const image of images) expect(image).toMatch(/^registry\.example\.com\/workspace-wallet\/[a-z]+:\d+\.\d+\.\d+$/)
})

test('every variable is known to its program, and every required one is set', () => {
  expect(workloads().map(programOf).sort()).toEqual(['checkpoints', 'core', 'courier', 'gateway', 'migrate'])
  for (const workload of workloads()) {
    const { shape } = schemas[programOf(workload)]!
    const names: string[] = containerOf(workload).env.map(({ name }: { name: string }) => name.replace(/_FILE$/, ''))
    for (const name of names) expect(Object.keys(shape), programOf(workload)).toContain(name)
    for (const [name, type] of Object.entries(shape))
      if (!(type as z.ZodType).safeParse(undefined).success) expect(names, programOf(workload)).toContain(name)
  }
})

test('secrets are those that secrets.ts writes for the program, and are mounted as files', async () => {
  const directory = await makeTempDir('secrets')
  await execute(process.execPath, [join(root, 'deploy/containers/secrets.ts'), directory])
  for (const workload of workloads()) {
    const program = programOf(workload)
    const { volumes } = templateOf(workload).spec
    expect(volumes, program).toContainEqual({
      name: 'secrets',
      secret: { secretName: `wallet-${program}`, defaultMode: 0o440 },
    })
    const [mount, ...others] = containerOf(workload).volumeMounts
    expect(mount).toEqual({ name: 'secrets', mountPath: '/secrets', readOnly: true })
    expect(others, program).toHaveLength(program === 'checkpoints' ? 1 : 0)
    const files = containerOf(workload).env.flatMap(({ value = '' }) => /^\/secrets\/(.*)$/.exec(value)?.[1] ?? [])
    expect(files.sort(), program).toEqual((await readdir(join(directory, program))).sort())
  }
})

test('no pod runs as root, writes to its file system, or has no limits', () => {
  for (const workload of workloads()) {
    const { securityContext, automountServiceAccountToken } = templateOf(workload).spec
    expect(securityContext, nameOf(workload)).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
    expect(automountServiceAccountToken).toBe(false)
    const container = containerOf(workload)
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    for (const amounts of [container.resources.requests, container.resources.limits])
      expect(Object.keys(amounts).sort(), nameOf(workload)).toEqual(['cpu', 'memory'])
  }
})

test('every program that does not end by itself has probes, a disruption budget and a network policy', () => {
  const policies = base.filter(({ kind }) => kind === 'NetworkPolicy')
  const budgets = base.filter(({ kind }) => kind === 'PodDisruptionBudget')
  for (const workload of workloads()) {
    const program = programOf(workload)
    const selector = { matchLabels: { 'app.kubernetes.io/name': program } }
    expect(templateOf(workload).metadata.labels).toMatchObject(selector.matchLabels)
    const policy = policies.find(({ spec }) => spec.podSelector.matchLabels?.['app.kubernetes.io/name'] === program)!
    expect(policy.spec.policyTypes, program).toContain('Egress')
    const container = containerOf(workload)
    const ports: { name: string; containerPort: number }[] = container.ports ?? []
    const allowed = (policy.spec.ingress ?? []).flatMap((rule: Resource['spec']) => rule.ports)
    expect(allowed.map(({ port }: { port: number }) => port).sort()).toEqual(
      ports.map(({ containerPort }) => containerPort).sort(),
    )
    if (ending.includes(program)) continue
    expect(workload.spec.selector).toEqual(selector)
    expect(budgets.filter(({ spec }) => spec.selector.matchLabels['app.kubernetes.io/name'] === program)).toHaveLength(
      1,
    )
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'])
      expect(ports.map(({ name }) => name)).toContain(container[probe].httpGet.port)
  }
})

test('Kubernetes waits longer than a program needs to stop, and resolves the names of cores that are not ready', () => {
  for (const workload of workloads()) {
    const program = programOf(workload)
    if (ending.includes(program)) continue
    const { env } = containerOf(workload)
    const delayMs = Number(env.find(({ name }: { name: string }) => name === 'STOP_DELAY_MS')?.value ?? 0)
    const { terminationGracePeriodSeconds } = workload.spec.template.spec
    expect(1000 * terminationGracePeriodSeconds, program).toBeGreaterThan(
      delayMs + (program === 'courier' ? attemptReserveMs : 13_000),
    )
  }
  const core = base.find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'core')!
  expect(core.spec).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: true })
})

test('Services, the autoscaler and CORE_URL name what exists', () => {
  for (const { spec, ...service } of base.filter(({ kind }) => kind === 'Service')) {
    const target = workloads().find(workload => programOf(workload) === spec.selector['app.kubernetes.io/name'])!
    const ports = containerOf(target).ports.map(({ name }: { name: string }) => name)
    expect(ports, nameOf({ ...service, spec })).toContain(spec.ports[0].targetPort)
  }
  const scaler = base.find(({ kind }) => kind === 'HorizontalPodAutoscaler')!
  expect(base.map(nameOf)).toContain(`Deployment ${scaler.spec.scaleTargetRef.name}`)
  const core = base.find(({ kind }) => kind === 'StatefulSet')!
  const urls = Array.from({ length: core.spec.replicas }, (_, at) => `http://core-${at}.${core.spec.serviceName}:8081`)
  for (const workload of workloads().filter(each => ['checkpoints', 'courier', 'gateway'].includes(programOf(each))))
    expect(containerOf(workload).env).toContainEqual({ name: 'CORE_URL', value: urls.join(',') })
})

test('a checkpoint is taken each day, one at a time, into a volume of its own', () => {
  const { spec } = base.find(({ kind }) => kind === 'CronJob')!
  expect(spec).toMatchObject({ schedule: expect.stringMatching(/^\d+ \d+ \* \* \*$/), concurrencyPolicy: 'Forbid' })
  const [{ args, workingDir, volumeMounts }] = spec.jobTemplate.spec.template.spec.containers
  expect(args).toEqual(['/app/cli/admin.ts', 'ledger', 'checkpoint'])
  expect(volumeMounts).toContainEqual({ name: 'checkpoints', mountPath: workingDir })
  const claims = base.filter(({ kind }) => kind === 'PersistentVolumeClaim').map(({ metadata }) => metadata.name)
  expect(spec.jobTemplate.spec.template.spec.volumes).toContainEqual({
    name: 'checkpoints',
    persistentVolumeClaim: { claimName: claims[0] },
  })
})
