import {
  type Media,
  mergedSchema,
  type OpenApiDocument,
  type Operation,
  type Response,
  resolved,
  type Schema,
} from './openapi-document.ts'

/** An operation with its method, in upper case, and its path. */
export type Described = { method: string; path: string; operation: Operation }

/** The signed operations, in the order of the document. */
export function operationsOf({ paths }: OpenApiDocument): Described[] {
  return Object.entries(paths)
    .filter(([path]) => path.startsWith('/api/'))
    .flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([method]) => ['get', 'post'].includes(method))
        .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    )
}

/** The operations by their first tag. */
export function groupsOf(document: OpenApiDocument) {
  const groups = Map.groupBy(operationsOf(document), ({ operation }) => operation.tags?.[0] ?? 'Other')
  return [...groups].map(([tag, operations]) => ({
    tag,
    description: document.tags?.find(({ name }) => name === tag)?.description,
    operations,
  }))
}

export type ParameterField = ReturnType<typeof parametersOf>[number]

export function parametersOf(document: OpenApiDocument, operation: Operation) {
  return (operation.parameters ?? []).map(node => {
    const { name, in: place, required, description, schema: declared, example } = resolved(document, node)
    const schema = mergedSchema(document, declared)
    return {
      name,
      in: place,
      schema,
      isRequired: required === true,
      description: description ?? schema.description,
      example: example ?? schema.examples?.[0],
    }
  })
}

export function requestMedia(document: OpenApiDocument, { requestBody }: Operation): Media | undefined {
  return requestBody && resolved(document, requestBody).content['application/json']
}

export function answerMedia(document: OpenApiDocument, { responses }: Operation): Media | undefined {
  const response = responses['200']
  return response && resolved<Response>(document, response).content?.['application/json']
}

/** The schema of what an answer is about: the records of a page, or else its `data`. The envelope is the same for all. */
export function answerSchema(
  document: OpenApiDocument,
  operation: Operation,
): { schema: Schema; isPage: boolean } | undefined {
  const envelope = answerMedia(document, operation)?.schema
  const data = envelope && mergedSchema(document, envelope).properties?.data
  if (!data) return undefined
  const { content, page } = mergedSchema(document, data).properties ?? {}
  const record = page && content && mergedSchema(document, content).items
  return record ? { schema: record, isPage: true } : { schema: data, isPage: false }
}

export function exampleOf(media: Media | undefined): unknown {
  return media?.example ?? Object.values(media?.examples ?? {})[0]?.value
}

/** What webhooks receive, by the types of events. `id`: the name of the operation that a receiver implements. */
export function eventsOf(document: OpenApiDocument) {
  return Object.entries(document.webhooks ?? {}).map(([type, { post }]) => {
    const media = requestMedia(document, post)!
    return {
      id: post.operationId,
      type,
      description: post.description ?? '',
      schema: media.schema!,
      example: exampleOf(media),
    }
  })
}
