import { z } from 'zod'
import { plainText, visibleText } from './text.ts'

/** The programs of the service. Each of their processes is an instance. */
export const instanceKinds = ['core', 'gateway', 'courier'] as const
export type InstanceKind = (typeof instanceKinds)[number]

/** How often an instance reports itself, in milliseconds. */
export const instanceReportMs = 10_000
/** An instance that has not been seen for so long is not running, or cannot reach a core. */
export const instanceSilentSeconds = 30
/** How long an instance is listed that was not seen any more. */
export const instanceKeptSeconds = 3_600
/** Maximum number of instances of a kind under one name. */
export const instancesPerName = 100
/** Maximum length of the reason why an instance cannot serve, in characters. What is longer is cut off. */
export const instanceFaultLength = 200

const count = z.int().min(0).max(1_000_000_000)

/** What an instance says about itself. */
export const instanceReport = z.object({
  /** Random, made when the process starts. Its log has it. */
  instanceId: z.uuid().toLowerCase(),
  host: visibleText(64),
  version: visibleText(32),
  /** Since the process started. */
  uptimeMs: z.int().min(0).max(3_155_760_000_000),
  /** Why it cannot serve; null if it can. */
  fault: plainText(instanceFaultLength).nullable(),
  /** Core: commands that wait to be posted. A gateway: calls that wait for core. A courier: deliveries that wait for a slot. */
  waiting: count,
  /** Cores that do not respond to it. */
  unhealthyCores: count,
})
export type InstanceReport = z.infer<typeof instanceReport>

/** An instance that stops. */
export const leaveInput = instanceReport.pick({ instanceId: true })

/** An instance as core has stored it. Whoever has the role of the service can store other texts. */
export const instance = z.object({
  instanceId: z.string(),
  kind: z.enum(instanceKinds),
  /** The name of the service token of a gateway or courier; `core` for a core. */
  name: z.string(),
  host: z.string(),
  version: z.string(),
  startedAt: z.date(),
  seenAt: z.date(),
  /** Seen within `instanceSilentSeconds`, by the clock of PostgreSQL. */
  isRunning: z.boolean(),
  fault: z.string().nullable(),
  waiting: z.int(),
  unhealthyCores: z.int(),
})
export type Instance = z.infer<typeof instance>

/** What people call an instance. Those of one name differ by their hosts and IDs. */
export function instanceLabel({ kind, name }: Pick<Instance, 'kind' | 'name'>): string {
  return kind === 'core' ? kind : `${kind}:${name}`
}

/** The kinds whose running instances have different versions. */
export function kindsOfMixedVersions(instances: readonly Pick<Instance, 'kind' | 'version' | 'isRunning'>[]) {
  const running = instances.filter(({ isRunning }) => isRunning)
  return instanceKinds.filter(kind => new Set(running.filter(each => each.kind === kind).map(versionOf)).size > 1)
}

const versionOf = ({ version }: { version: string }) => version
