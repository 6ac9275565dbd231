/** The parts of an OpenAPI 3.1 document that the reference shows. */
export type OpenApiDocument = {
  info: { title: string; version: string; description?: string }
  tags?: { name: string; description?: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks?: Record<string, { post: Operation }>
  components?: { schemas?: Record<string, Schema> }
}

export type Operation = {
  operationId: string
  summary: string
  description?: string
  tags?: string[]
  parameters?: (Parameter | Reference)[]
  requestBody?: { content: Record<string, Media> } | Reference
  responses: Record<string, Response | Reference>
}

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema: Schema
  example?: unknown
}

export type Response = { description: string; content?: Record<string, Media> }

export type Media = {
  schema?: Schema
  example?: unknown
  examples?: Record<string, { summary?: string; value: unknown }>
}

export type Schema = {
  $ref?: string
  type?: string | string[]
  title?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  discriminator?: { propertyName: string }
  enum?: unknown[]
  const?: unknown
  default?: unknown
  examples?: unknown[]
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  exclusiveMinimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
}

type Reference = { $ref: string }

/** Resolves a reference, such as `#/components/schemas/Wallet`. @throws Error if its target does not exist */
export function resolved<T extends object>(document: OpenApiDocument, node: T | Reference): T {
  if (!('$ref' in node) || typeof node.$ref !== 'string') return node as T
  const target = node.$ref
    .slice(2)
    .split('/')
    .reduce<unknown>((parent, name) => (parent as Record<string, unknown> | undefined)?.[name], document)
  if (!target) throw new Error(`the OpenAPI document has no ${node.$ref}`)
  const { $ref: _, ...siblings } = node as Reference
  return { ...resolved(document, target as T), ...siblings }
}

/** A schema without a reference, and with the properties of its `allOf` merged. */
export function mergedSchema(document: OpenApiDocument, node: Schema): Schema {
  const schema = resolved(document, node)
  if (!schema.allOf) return schema
  const parts = schema.allOf.map(part => mergedSchema(document, part))
  return {
    ...Object.assign({}, ...parts),
    ...schema,
    properties: Object.assign({}, ...parts.map(part => part.properties), schema.properties),
    required: [...parts.flatMap(part => part.required ?? []), ...(schema.required ?? [])],
  }
}
