import type { Entry } from './browser/search-rank.ts'
import type { OpenApiDocument } from './openapi-document.ts'
import { answerSchema, operationsOf, parametersOf, requestMedia } from './operations.ts'
import { type Field, fieldsOf, objectsIn } from './schema-fields.ts'

/** What the search of the pages finds in the OpenAPI document: operations, and their fields at any depth. */
export function referenceEntries(document: OpenApiDocument): Entry[] {
  return operationsOf(document).flatMap(({ method, path, operation }) => {
    const { operationId: id, summary, description = '' } = operation
    const parameters = parametersOf(document, operation).filter(({ in: place }) => place !== 'header')
    const body = requestMedia(document, operation)?.schema
    const answer = answerSchema(document, operation)?.schema
    return [
      {
        kind: 'operation',
        title: summary,
        within: `${method} ${path}`,
        url: `/docs#${id}`,
        text: `${id} ${plainText(description)}`,
      },
      ...fieldEntries(document, parameters, summary, id),
      ...fieldEntries(document, body ? fieldsOf(document, body) : [], summary, id),
      ...fieldEntries(document, answer ? fieldsOf(document, answer) : [], `answer of ${summary}`, `${id}.answer`),
    ] satisfies Entry[]
  })
}

/** The IDs are those that `fieldList` writes. */
function fieldEntries(document: OpenApiDocument, fields: Field[], within: string, path: string): Entry[] {
  return fields.flatMap(({ name, schema, description = '' }) => {
    const id = `${path}.${name}`
    const inner = objectsIn(document, schema).flatMap((object, at) =>
      fieldEntries(document, fieldsOf(document, object), `${name}, ${within}`, at === 0 ? id : `${id}-${at + 1}`),
    )
    return [{ kind: 'field', title: name, within, url: `/docs#${id}`, text: plainText(description) }, ...inner]
  })
}

/** Markdown without its marks. */
export function plainText(text: string): string {
  return text
    .replaceAll(/\[([^\]]+)\]\([^)\s]+\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
