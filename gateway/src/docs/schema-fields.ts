import { type Html, html } from './html.ts'
import { inline } from './markdown.ts'
import { mergedSchema, type OpenApiDocument, type Schema } from './openapi-document.ts'

/** One row of a list of fields or parameters. */
export type Field = { name: string; schema: Schema; isRequired: boolean; description: string | undefined }

/** The properties of an object's schema. */
export function fieldsOf(document: OpenApiDocument, node: Schema): Field[] {
  const { properties = {}, required = [] } = mergedSchema(document, node)
  return Object.entries(properties).map(([name, property]) => {
    const schema = mergedSchema(document, property)
    return { name, schema, isRequired: required.includes(name), description: schema.description }
  })
}

/**
 * A list of fields with their types, limits and descriptions. Each field has a link to itself.
 *
 * @param of what the fields belong to: whether a field is required matters in requests only
 * @param path begins the IDs of the fields
 */
export function fieldList(document: OpenApiDocument, fields: Field[], of: 'request' | 'answer', path: string): Html {
  const rows = fields.map(({ name, schema, isRequired, description }) => {
    const id = `${path}.${name}`
    return html`
      <div class="field" id="${id}">
        <dt><a href="#${id}"><code>${name}</code></a>
          <span class="type">${typeOf(document, schema)}</span>
          ${of === 'request' && isRequired && html`<span class="required">required</span>`}</dt>
        <dd>${inline(description)} ${limits(document, schema, description)}${nested(document, name, schema, of, id)}</dd>
      </div>`
  })
  return html`<dl class="fields">${rows}</dl>`
}

/** The fields of an object, or of the objects in an array, folded: a list for each kind of object. */
function nested(document: OpenApiDocument, name: string, schema: Schema, of: 'request' | 'answer', id: string): Html[] {
  const objects = objectsIn(document, schema)
  return objects.map((object, at) => {
    const others = objects.filter(each => each !== object)
    return html`<details><summary>Fields of <code>${name}</code>${kindOf(object, others)}</summary>
      ${fieldList(document, fieldsOf(document, object), of, pathOfObject(id, at))}</details>`
  })
}

/** What begins the IDs of the fields of an object in the field `id`. Those of the first kind of object are shorter. */
export function pathOfObject(id: string, at: number): string {
  return at === 0 ? id : `${id}-${at + 1}`
}

/** The kinds of objects that a value is, or that an array has. */
export function objectsIn(document: OpenApiDocument, node: Schema): Schema[] {
  const schema = mergedSchema(document, node)
  if (schema.items) return objectsIn(document, schema.items)
  if (schema.discriminator) return [commonFields(document, schema, schema.discriminator.propertyName)]
  const variants = schema.oneOf ?? schema.anyOf
  if (variants) return variants.flatMap(variant => objectsIn(document, variant))
  return schema.properties ? [schema] : []
}

/**
 * One object for all variants of a union. A field that has several schemas is again a union, of the different ones, each
 * with the types that have it as its title. All variants have fields of the same names.
 */
function commonFields(document: OpenApiDocument, { oneOf = [] }: Schema, discriminator: string): Schema {
  const variants = oneOf.map(variant => mergedSchema(document, variant).properties!)
  const typeOfVariant = (variant: Record<string, Schema>) => String(variant[discriminator]!.const)
  const properties = Object.keys(variants[0]!).map((name): [string, Schema] => {
    if (name === discriminator) return [name, { type: 'string', enum: variants.map(typeOfVariant) }]
    const groups = [...Map.groupBy(variants, variant => JSON.stringify(variant[name])).values()]
    if (groups.length === 1) return [name, variants[0]![name]!]
    const titleOf = (group: typeof variants) => group.map(variant => `\`${typeOfVariant(variant)}\``).join(', ')
    return [
      name,
      { oneOf: groups.map(group => ({ ...mergedSchema(document, group[0]![name]!), title: titleOf(group) })) },
    ]
  })
  return { type: 'object', properties: Object.fromEntries(properties) }
}

/** What tells one kind of object from the others: its title, or the required fields that only it has. */
function kindOf({ title, required = [] }: Schema, others: readonly Schema[]): Html | false {
  if (title) return html` of ${inline(title)}`
  if (others.length === 0) return false
  return html` with ${codes(required.filter(name => !others.some(other => other.properties?.[name])))}`
}

const codes = (names: readonly unknown[]) =>
  names.map((name, at) => html`${at > 0 && ', '}<code>${String(name)}</code>`)

/** The type in words: `string`, `string or null`, `array of object`. */
export function typeOf(document: OpenApiDocument, node: Schema): string {
  const { type, items, oneOf, anyOf, enum: values, const: constant } = mergedSchema(document, node)
  if (type === 'array') return items ? `array of ${typeOf(document, items)}` : 'array'
  if (type !== undefined) return [type].flat().join(' or ')
  const variants = oneOf ?? anyOf
  if (variants) return [...new Set(variants.map(variant => typeOf(document, variant)))].join(' or ')
  return typeof (constant ?? values?.[0] ?? '')
}

/** The limits of a value, in words, without those that the description names. */
function limits(document: OpenApiDocument, schema: Schema, description = ''): Html {
  const { minLength, maxLength, minimum, exclusiveMinimum, maximum, minItems, maxItems } = schema
  const parts = [
    !describes(description, maxLength) && range(minLength, maxLength, 'characters'),
    range(minItems, maxItems, 'items'),
    range(minimum, maximum, ''),
    exclusiveMinimum !== undefined && `More than ${exclusiveMinimum}.`,
    schema.default !== undefined &&
      !/\bdefault\b/i.test(description) &&
      html`Default: <code>${JSON.stringify(schema.default)}</code>.`,
    values(schema.items ? mergedSchema(document, schema.items) : schema),
  ]
  return html`<div class="limits">${parts.map(part => part && html`${part} `)}</div>`
}

const describes = (description: string, limit: number | undefined) => new RegExp(`\\b${limit}\\b`).test(description)

/** Longer lists of values, such as the currencies, are folded. */
const maxListedValues = 16

function values({ enum: all, const: constant }: Schema): Html | string | false {
  if (constant !== undefined) return html`Always <code>${String(constant)}</code>.`
  if (!all) return false
  if (all.length > maxListedValues)
    return html`<details class="values"><summary>One of ${all.length} values</summary><code>${all.join(', ')}</code></details>`
  return html`One of ${codes(all)}.`
}

function range(min: number | undefined, max: number | undefined, unit: string): string | false {
  const of = unit && ` ${unit}`
  if (min && max !== undefined) return min === max ? `Exactly ${min}${of}.` : `${min} to ${max}${of}.`
  if (max !== undefined && max < Number.MAX_SAFE_INTEGER) return `At most ${max}${of}.`
  return min ? `At least ${min}${of}.` : false
}
