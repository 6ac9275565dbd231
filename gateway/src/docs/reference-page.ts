import { type Html, html } from './html.ts'
import { markdown } from './markdown.ts'
import {
  type Media,
  mergedSchema,
  type OpenApiDocument,
  type Operation,
  type Response,
  resolved,
  type Schema,
} from './openapi-document.ts'
import { bodyInputs, operationForm, parameterInputs } from './operation-form.ts'
import { secretInput } from './page.ts'
import { fieldList, fieldsOf } from './schema-fields.ts'

type Described = { method: string; path: string; operation: Operation }

/** The body of the API reference. It can be read without its script, which only sends requests. */
export function referenceBody(document: OpenApiDocument): Html {
  const groups = groupsOf(document)
  const [lead, ...rest] = markdown(document.info.description)
  return html`
<div class="layout">
<nav class="contents" aria-label="Endpoints">
  <details open><summary>Endpoints</summary>
  ${groups.map(
    ({ tag, operations }) => html`<h2>${tag}</h2>
    <ul>${operations.map(
      ({ method, operation }) => html`
      <li><a href="#${operation.operationId}"><span class="method ${method.toLowerCase()}">${method}</span> ${operation.summary}</a></li>`,
    )}</ul>`,
  )}
  </details>
</nav>
<main id="main" tabindex="-1">
  <h1>API reference</h1>
  <div class="lead">${lead}</div>
  ${keyForm()}
  <div class="prose">${rest}</div>
  ${groups.map(
    ({ tag, description, operations }) => html`
    <section class="group" aria-labelledby="tag-${slug(tag)}">
      <h2 id="tag-${slug(tag)}">${tag}</h2>
      ${markdown(description)}
      ${operations.map(described => operationArticle(document, described))}
    </section>`,
  )}
</main>
</div>
<datalist id="wallets"></datalist><datalist id="transfers"></datalist><datalist id="holds"></datalist><datalist id="webhooks"></datalist>`
}

function keyForm(): Html {
  return html`
  <form id="key" class="panel" aria-labelledby="key-title" autocomplete="off" novalidate>
    <h2 id="key-title">Your API key</h2>
    <p>Every request is signed with the secret of an API key. Enter both, and each “Try it” below sends a signed request
      to this server. <code>npm start</code> prints a key for the demo workspace.</p>
    <div class="pair">
      <div class="row">
        <label for="api-key">API key</label>
        <input id="api-key" type="text" autocomplete="off" spellcheck="false" autocapitalize="off" aria-describedby="api-key-hint">
        <p class="hint" id="api-key-hint">Begins with <code>ak_</code>.</p>
      </div>
      ${secretInput('api-secret')}
    </div>
    <button type="submit">Use this key</button>
    <div id="key-status" role="status"></div>
    <ul id="key-wallets"></ul>
  </form>`
}

function operationArticle(document: OpenApiDocument, { method, path, operation }: Described): Html {
  const { operationId: id, summary, description } = operation
  const parameters = parametersOf(document, operation)
  const parametersIn = (place: string) => parameters.filter(each => each.in === place)
  const body = requestMedia(document, operation)
  const answer = answerMedia(document, operation)
  const inputs = [...parameterInputs(parameters), ...bodyInputs(document, body?.schema, exampleOf(body))]
  return html`
  <article class="operation" id="${id}" aria-labelledby="${id}-title" tabindex="-1">
    <div class="about">
      <h3 id="${id}-title"><a href="#${id}">${summary}</a></h3>
      <p class="route"><span class="method ${method.toLowerCase()}">${method}</span> <code>${breakable(path)}</code></p>
      ${markdown(description)}
      ${parameterSection(document, 'Path parameters', parametersIn('path'))}
      ${parameterSection(document, 'Query parameters', parametersIn('query'))}
      ${body?.schema && html`<h4>Body</h4>${fieldList(document, fieldsOf(document, body.schema), 'request')}`}
      ${answerSection(document, answer)}
      ${errorSection(document, operation)}
    </div>
    <div class="side">
      ${operationForm({ document, id, method, path, inputs })}
      ${exampleSection(body, answer)}
    </div>
  </article>`
}

type ParameterField = ReturnType<typeof parametersOf>[number]

function parametersOf(document: OpenApiDocument, operation: Operation) {
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

function parameterSection(document: OpenApiDocument, title: string, parameters: ParameterField[]): Html | false {
  return parameters.length > 0 && html`<h4>${title}</h4>${fieldList(document, parameters, 'request')}`
}

function requestMedia(document: OpenApiDocument, { requestBody }: Operation): Media | undefined {
  return requestBody && resolved(document, requestBody).content['application/json']
}

function answerMedia(document: OpenApiDocument, { responses }: Operation): Media | undefined {
  const response = responses['200']
  return response && resolved<Response>(document, response).content?.['application/json']
}

/** The fields of `data`. The envelope around it is the same for all operations. */
function answerSection(document: OpenApiDocument, answer: Media | undefined): Html | false {
  const data = answer?.schema && mergedSchema(document, answer.schema).properties?.data
  if (!data) return false
  const records = recordsOf(document, data)
  return html`<details><summary>Fields of ${records === data ? 'the answer' : 'a record'}</summary>
    ${fieldList(document, fieldsOf(document, records), 'answer')}</details>`
}

/** The records of a page, or the data itself if it is one record. */
function recordsOf(document: OpenApiDocument, data: Schema): Schema {
  const { content, page } = mergedSchema(document, data).properties ?? {}
  return (page && content && mergedSchema(document, content).items) ?? data
}

function errorSection(document: OpenApiDocument, { responses }: Operation): Html | false {
  const failures = Object.entries(responses).filter(([status]) => Number(status) >= 400)
  if (failures.length === 0) return false
  return html`<details><summary>Errors</summary><dl class="fields">${failures.map(
    ([status, node]) => html`<div class="field"><dt>${status}</dt>
      <dd>${markdown(resolved<Response>(document, node).description)}</dd></div>`,
  )}</dl></details>`
}

function exampleSection(body: Media | undefined, answer: Media | undefined): Html {
  const [sent, received] = [exampleOf(body), exampleOf(answer)]
  return html`
    ${sent !== undefined && html`<details><summary>Example body</summary>${code(sent)}</details>`}
    ${received !== undefined && html`<details><summary>Example answer</summary>${code(received)}</details>`}`
}

const code = (value: unknown) =>
  html`<pre class="json" tabindex="0"><code>${JSON.stringify(value, null, 2)}</code></pre>`

function exampleOf(media: Media | undefined): unknown {
  return media?.example ?? Object.values(media?.examples ?? {})[0]?.value
}

/** The operations by their first tag, in the order of the document. */
function groupsOf({ paths, tags = [] }: OpenApiDocument) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => ['get', 'post'].includes(method))
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const signed = operations.filter(({ path }) => path.startsWith('/api/'))
  return [...Map.groupBy(signed, ({ operation }) => operation.tags?.[0] ?? 'Other')].map(([tag, operations]) => ({
    tag,
    description: tags.find(({ name }) => name === tag)?.description,
    operations,
  }))
}

const slug = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')

/** Lets a long path break before each slash. */
const breakable = (path: string) => path.split('/').map((part, at) => html`${at > 0 && html`<wbr>/`}${part}`)
