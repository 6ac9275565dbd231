import { lexer } from 'marked'
import type { Entry } from './browser/search-rank.ts'
import { errorPages } from './error-pages.ts'
import { anchorOf } from './markdown.ts'
import type { OpenApiDocument } from './openapi-document.ts'
import { answerSchema, eventsOf, operationsOf, parametersOf, requestMedia } from './operations.ts'
import { type Field, fieldsOf, objectsIn, pathOfObject } from './schema-fields.ts'
import { type SitePage, sitePages } from './site-pages.ts'

/** What the search of the pages finds. */
export function searchIndex(document: OpenApiDocument): Entry[] {
  const errors = errorPages(document).map(({ title, path, summary }) => ({
    kind: 'error' as const,
    title,
    within: '',
    url: path,
    text: plainText(summary),
  }))
  return [...referenceEntries(document), ...errors, ...sitePages().flatMap(pageEntries)]
}

/** What it finds in the OpenAPI document: operations, events, and their fields at any depth. */
export function referenceEntries(document: OpenApiDocument): Entry[] {
  return [...operationEntries(document), ...eventEntries(document)]
}

function eventEntries(document: OpenApiDocument): Entry[] {
  return eventsOf(document).flatMap(({ id, type, description, schema }) => [
    { kind: 'event', title: type, within: '', url: `/docs#${id}`, text: plainText(description) },
    ...fieldEntries(document, fieldsOf(document, schema), type, id),
  ])
}

function operationEntries(document: OpenApiDocument): Entry[] {
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
      fieldEntries(document, fieldsOf(document, object), `${name}, ${within}`, pathOfObject(id, at)),
    )
    return [{ kind: 'field', title: name, within, url: `/docs#${id}`, text: plainText(description) }, ...inner]
  })
}

/** A page and its sections. */
function pageEntries({ path, title, text }: SitePage): Entry[] {
  const entries: Entry[] = []
  for (const token of lexer(text)) {
    if (token.type === 'heading' && token.depth <= 3) {
      const isPage = entries.length === 0
      const name = plainText(token.text)
      const url = isPage ? path : `${path}#${anchorOf(token.text)}`
      entries.push({ kind: 'guide', title: name, within: isPage ? '' : title, url, text: '' })
    } else if (/^(paragraph|list|table)$/.test(token.type)) {
      const current = entries.at(-1)
      if (current) current.text = `${current.text} ${plainText(token.raw)}`.trim()
    }
  }
  return entries
}

/** Markdown without its marks. */
export function plainText(text: string): string {
  return text
    .replaceAll(/\[([^\]]+)\]\([^)\s]+\)/g, '$1')
    .replaceAll(/[`*|]|-{3,}/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
