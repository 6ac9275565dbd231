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
 * A list of fields with their types, limits and descriptions.
 *
 * @param of what the fields belong to: whether a field is required matters in requests only
 */
export function fieldList(document: OpenApiDocument, fields: Field[], of: 'request' | 'answer'): Html {
  const rows = fields.map(
    ({ name, schema, isRequired, description }) => html`
      <div class="field">
        <dt><code>${name}</code>
          <span class="type">${typeOf(document, schema)}</span>
          ${of === 'request' && isRequired && html`<span class="required">required</span>`}</dt>
        <dd>${inline(description)} ${limits(document, schema, description)}${nested(document, name, schema, of)}</dd>
      </div>`,
  )
  return html`<dl class="fields">${rows}</dl>`
}

/** The fields of an object, or of the objects in an array, folded. */
function nested(document: OpenApiDocument, name: string, schema: Schema, of: 'request' | 'answer'): Html[] {
  return objectsIn(document, schema).map(
    object => html`<details><summary>Fields of ${object.description ?? html`<code>${name}</code>`}</summary>
      ${fieldList(document, fieldsOf(document, object), of)}</details>`,
  )
}

function objectsIn(document: OpenApiDocument, node: Schema): Schema[] {
  const schema = mergedSchema(document, node)
  if (schema.items) return objectsIn(document, schema.items)
  const variants = schema.oneOf ?? schema.anyOf
  if (variants) return variants.flatMap(variant => objectsIn(document, variant))
  return schema.properties ? [schema] : []
}

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
  return html`<span class="limits">${parts.map(part => part && html`${part} `)}</span>`
}

const describes = (description: string, limit: number | undefined) => new RegExp(`\\b${limit}\\b`).test(description)

/** Longer lists of values, such as the currencies, are in the OpenAPI document. */
const maxListedValues = 16

function values({ enum: all, const: constant }: Schema): Html | string | false {
  if (constant !== undefined) return html`Always <code>${String(constant)}</code>.`
  if (!all) return false
  if (all.length > maxListedValues)
    return html`One of ${all.length} values: see the <a href="/openapi.json">OpenAPI document</a>.`
  return html`One of ${all.map((value, at) => html`${at > 0 && ', '}<code>${String(value)}</code>`)}.`
}

function range(min: number | undefined, max: number | undefined, unit: string): string | false {
  const of = unit && ` ${unit}`
  if (min && max !== undefined) return min === max ? `Exactly ${min}${of}.` : `${min} to ${max}${of}.`
  if (max !== undefined && max < Number.MAX_SAFE_INTEGER) return `At most ${max}${of}.`
  return min ? `At least ${min}${of}.` : false
}
