import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** All faults of a configuration, one sentence each. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
  readonly faults: string[]

  constructor(faults: string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

/**
 * The configuration does not fit the stored data, such as a key that is missing. The program exits with `storedDataExitCode`, and
 * `npm start` keeps PostgreSQL running for a repair.
 */
export class StoredDataError extends ConfigurationError {}

/** EX_DATAERR of sysexits.h. */
export const storedDataExitCode = 65

/**
 * Reads the environment variables that a schema names. `NAME_FILE` can give the path of a file with the value of `NAME`, as
 * for container secrets. An empty variable counts as unset.
 *
 * @throws ConfigurationError with every fault
 */
export function readEnvironment<Schema extends z.ZodObject>(
  schema: Schema,
  environment: NodeJS.ProcessEnv,
): z.infer<Schema> {
  const values: Record<string, string> = {}
  const faults: string[] = []
  /** Variables with a fault, which the schema need not report again. */
  const reported = new Set<string>()
  for (const name of Object.keys(schema.shape)) {
    const file = environment[`${name}_FILE`]
    const value = environment[name]
    if (file && value) {
      reported.add(name)
      faults.push(`${name} and ${name}_FILE are both set: unset one of them.`)
    } else if (value) values[name] = value
    else if (file)
      try {
        values[name] = readFileSync(file, 'utf8').trim()
      } catch {
        reported.add(name)
        faults.push(`${name}_FILE names ${file}, which cannot be read: check that it exists, and its permissions.`)
      }
  }
  const result = schema.safeParse(values)
  for (const issue of result.error?.issues ?? []) {
    const name = String(issue.path[0] ?? '')
    if (reported.has(name)) continue
    const missing = name in schema.shape && values[name] === undefined
    faults.push(missing ? `${name} is missing: ${describe(schema, name)}.` : `${`${name} ${issue.message}`.trim()}.`)
  }
  if (faults.length > 0 || !result.success) throw new ConfigurationError(faults)
  return result.data
}

function describe(schema: z.ZodObject, name: string): string {
  return schema.shape[name]?.description ?? 'it is required'
}

/** A TCP port. 0 picks a free one. */
export const port = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a port number, 0 to 65535')
  .transform(Number)
  .refine(value => value <= 65535, { error: 'must be a port number, 0 to 65535' })

/** A whole number between two inclusive bounds. */
export function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^\d{1,12}$/, message)
    .transform(Number)
    .refine(value => value >= min && value <= max, { error: message })
}

/** The URL of a server with one of these schemes. */
export function serverUrl(...schemes: string[]) {
  const message = `must be a URL that begins with ${schemes.map(scheme => `${scheme}://`).join(' or ')}`
  return z.string().refine(
    text => {
      const url = URL.parse(text)
      return url !== null && schemes.includes(url.protocol.slice(0, -1)) && url.hostname !== ''
    },
    { error: message },
  )
}

/** A variable that a function parses. The message of its error completes a sentence that begins with the variable's name. */
export function parsed<Value>(parse: (text: string) => Value) {
  return z.string().transform((text, context): Value => {
    try {
      return parse(text)
    } catch (error) {
      context.issues.push({ code: 'custom', message: (error as Error).message, input: text })
      return z.NEVER
    }
  })
}

/** CORE_URL: the origins of the cores. */
export const coreUrls = parsed(parseCoreUrls).describe('URL of core, or comma-separated URLs of several cores')

function parseCoreUrls(text: string): string[] {
  return text.split(',').map(entry => {
    const url = URL.parse(entry.trim())
    if (!url || !['http:', 'https:'].includes(url.protocol)) throw new Error('must be http:// or https:// URLs')
    return url.origin
  })
}
