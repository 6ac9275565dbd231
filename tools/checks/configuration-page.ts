import type { z } from 'zod'
import { gatewaySchema } from '../../gateway/src/config.ts'
import { coreSchema, migrationSchema } from '../../services/core/src/config.ts'
import { courierSchema } from '../../services/courier/src/config.ts'
import { table } from './markdown.ts'

/** The text of docs/configuration.md, generated from the configuration schemas. */
export function configurationPage(): string {
  const programs = {
    Core: coreSchema,
    'The migration step': migrationSchema,
    'The gateway': gatewaySchema,
    'The courier': courierSchema,
  }
  const sections = Object.entries(programs).flatMap(([program, schema]) => [
    `## ${program}`,
    '',
    ...table(
      ['Variable', 'Default', 'Meaning'],
      Object.entries(schema.shape).map(([name, type]) => [name, defaultOf(type), type.description ?? '']),
    ),
    '',
  ])
  return [
    '# Configuration',
    '',
    'Generated from the configuration schemas by `npm run golden`. Programs read their environment once, at start, and',
    'report all missing and invalid variables together. Instead of a variable `NAME`, you can set `NAME_FILE` to the path',
    'of a file that holds the value, such as a container secret. `npm start` sets the required variables itself; see',
    '`npm start -- --help`.',
    '',
    ...sections,
  ].join('\n')
}

function defaultOf(type: z.ZodType): string {
  if (!type.isOptional()) return 'required'
  const value: unknown = type.safeParse(undefined).data
  if (value === undefined) return 'none'
  return Array.isArray(value) && value.length === 0 ? 'none' : String(value)
}
