import { errorTable } from '@workspace-wallet/contract'
import {
  type OpenApiDocument,
  type Parameter,
  queriesOf,
  recordSchemas,
  type Schema,
  withoutLinks,
} from './client-records.ts'

/** A key of a TypedDict. */
type Key = { name: string; type: string; description?: string | undefined; isOptional: boolean }

/** The text of packages/python/src/workspace_wallet/records.py: the types of records, bodies, queries and error codes. */
export function pythonRecords(document: OpenApiDocument): string {
  const declarations: string[] = []
  const aliases: string[] = []
  for (const [name, schema] of recordSchemas(document)) declare(name, schema, declarations, aliases)
  for (const { name, operationId, fields } of queriesOf(document, keysOfQuery))
    declarations.push(typedDict(name, fields, `The query of ${operationId}.`))
  const codes = Object.entries(errorTable).map(([code, { http, message }]) => `    "${code}",  # ${http} ${message}`)
  return [
    '"""The records of the API, the bodies and queries that it takes, and its error codes.',
    '',
    'Generated from gateway/openapi.json by `npm run golden`. Amounts and balances are decimal strings, never floats: a float cannot',
    'hold every amount exactly. Newer services may send further keys, types of events and error codes: ignore what you do not know.',
    '"""',
    '',
    'from __future__ import annotations',
    '',
    'from typing import Literal, NotRequired, TypedDict',
    ...declarations.map(each => `\n\n${each}`),
    '',
    '',
    ...aliases.map(each => `${each}\n`),
    'KnownErrorCode = Literal[',
    ...codes,
    ']',
    '"""The error codes at the time of this release. docs/errors.md of the service describes them."""',
    '',
  ].join('\n')
}

/** Adds the declaration of a schema, after those of the objects inside of it. Aliases refer to classes, so they come last. */
function declare(name: string, schema: Schema, declarations: string[], aliases: string[]): void {
  const { discriminator, oneOf = [], properties, required = [] } = schema
  if (discriminator) {
    aliases.push(`${name} = (\n    ${oneOf.map(each => typeOf(each, name, [])).join('\n    | ')}\n)`)
    const types = Object.keys(discriminator.mapping).map(each => `    "${each}",`)
    aliases.push(`${name}Type = Literal[\n${types.join('\n')}\n]`)
  } else if (properties) {
    const keys = Object.entries(properties).map(([key, property]) => ({
      name: key,
      description: property.description,
      isOptional: !required.includes(key),
      type: typeOf(property, `${name}${key.replace(/^./, first => first.toUpperCase())}`, declarations),
    }))
    declarations.push(typedDict(name, keys, schema.description))
  } else aliases.push(`${name} = ${typeOf(schema, name, declarations)}`)
}

function keysOfQuery(parameters: Parameter[]): Key[] {
  return parameters.map(({ name, description, schema }) => {
    const item = schema.items && typeOf(schema.items, name, [])
    return { name, description, isOptional: true, type: item ? `${item} | list[${item}]` : typeOf(schema, name, []) }
  })
}

const keywords = ['from']

function typedDict(name: string, keys: Key[], description: string | undefined): string {
  const typed = keys.map(key => ({ ...key, type: key.isOptional ? `NotRequired[${key.type}]` : key.type }))
  // A class cannot have a key whose name is a keyword.
  if (typed.some(key => keywords.includes(key.name)))
    return [
      `${name} = TypedDict(`,
      `    "${name}",`,
      '    {',
      ...typed.flatMap(key => [
        ...(key.description ? [`        # ${textOf(key.description)}`] : []),
        `        "${key.name}": ${key.type},`,
      ]),
      '    },',
      ')',
    ].join('\n')
  return [
    `class ${name}(TypedDict):`,
    ...(description ? [`    """${textOf(description)}"""`, ''] : []),
    ...typed.flatMap(key => [
      `    ${key.name}: ${key.type}`,
      ...(key.description ? [`    """${textOf(key.description)}"""`] : []),
    ]),
  ].join('\n')
}

/** @param name of the TypedDict, if the schema is an object */
function typeOf(schema: Schema, name: string, declarations: string[]): string {
  const { $ref, type, enum: values, const: value, items, properties } = schema
  if ($ref) return $ref.slice($ref.lastIndexOf('/') + 1)
  if (value !== undefined) return `Literal["${value}"]`
  if (values) return enumType(values)
  if (schema.pattern) return 'str'
  const union = schema.anyOf ?? schema.oneOf
  if (union) return unionOf(union.map(each => typeOf(each, name, declarations)))
  if (properties) {
    declare(name, schema, declarations, [])
    return name
  }
  if (items) return `list[${typeOf(items, name, declarations)}]`
  return unionOf([type].flat().map(each => names[each!] ?? 'object'))
}

const names: Record<string, string> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
  object: 'dict[str, object]',
}

const unionOf = (types: string[]) => [...new Set(types)].join(' | ')

const mostListedValues = 20

function enumType(values: string[]): string {
  // A newer service has more currencies.
  if (values.length > mostListedValues) return 'str'
  return values.includes('transfer.completed') ? 'EventType' : `Literal[${values.map(each => `"${each}"`).join(', ')}]`
}

function textOf(description: string): string {
  return withoutLinks(description).replaceAll('"""', "'''")
}
