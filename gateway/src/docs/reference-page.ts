import { type SampleLanguage, sampleLanguages } from './browser/samples.ts'
import { codeBlock, copyButton } from './code-block.ts'
import { type Html, html } from './html.ts'
import { markdown } from './markdown.ts'
import {
  type Media,
  type OpenApiDocument,
  type Operation,
  type Response,
  resolved,
  type Schema,
} from './openapi-document.ts'
import { bodyInputs, operationForm, parameterInputs } from './operation-form.ts'
import {
  answerMedia,
  answerSchema,
  type Described,
  eventsOf,
  exampleOf,
  groupsOf,
  type ParameterField,
  parametersOf,
  requestMedia,
} from './operations.ts'
import { secretInput } from './page.ts'
import { fieldList, fieldsOf } from './schema-fields.ts'

/** The body of the API reference. It can be read without its script, which only sends requests. */
export function referenceBody(given: OpenApiDocument): Html {
  // A link to another operation must not load the page again, which would lose the secret.
  const document = JSON.parse(JSON.stringify(given).replaceAll('](/docs#', '](#')) as OpenApiDocument
  const groups = groupsOf(document)
  const [lead, ...rest] = markdown(document.info.description)
  return html`
<div class="layout">
<nav class="contents" aria-label="Endpoints">
  <details open><summary>Endpoints<span class="here"></span></summary>
  ${groups.map(
    ({ tag, operations }) => html`<h2>${tag}</h2>
    <ul>${operations.map(
      ({ method, operation }) => html`
      <li><a href="#${operation.operationId}" data-title="${operation.summary}"><span class="method ${method.toLowerCase()}">${method}</span> ${operation.summary}</a></li>`,
    )}</ul>`,
  )}
  <h2>Event types</h2>
  <ul class="plain">${eventsOf(document).map(
    ({ id, type }) => html`
      <li><a href="#${id}" data-title="${type}">${type}</a></li>`,
  )}</ul>
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
  ${eventSection(document)}
</main>
</div>
<datalist id="currencies">${currencies(document).map(code => html`<option>${code}</option>`)}</datalist>`
}

/** All codes, which the script of the page offers in its forms. */
function currencies({ components }: OpenApiDocument): string[] {
  return ((components?.schemas?.Currency as Schema | undefined)?.enum ?? []) as string[]
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
      ${parameterSection(document, id, 'Path parameters', parametersIn('path'))}
      ${parameterSection(document, id, 'Query parameters', parametersIn('query'))}
      ${body?.schema && html`<h4>Body</h4>${fieldList(document, fieldsOf(document, body.schema), 'request', id)}`}
      ${answerSection(document, id, operation)}
      ${errorSection(document, operation)}
    </div>
    <div class="side">
      ${operationForm({ document, id, method, path, inputs })}
      ${sampleSection()}
      ${exampleSection(answer)}
    </div>
  </article>`
}

function parameterSection(
  document: OpenApiDocument,
  id: string,
  title: string,
  parameters: ParameterField[],
): Html | false {
  return parameters.length > 0 && html`<h4>${title}</h4>${fieldList(document, parameters, 'request', id)}`
}

/** The fields of `data`. The envelope around it is the same for all operations. */
function answerSection(document: OpenApiDocument, id: string, operation: Operation): Html | false {
  const answer = answerSchema(document, operation)
  if (!answer) return false
  return html`<details><summary>Fields of ${answer.isPage ? 'a record' : 'the answer'}</summary>
    ${fieldList(document, fieldsOf(document, answer.schema), 'answer', `${id}.answer`)}</details>`
}

/** Each type of event: when it occurs, its fields, and an example. */
function eventSection(document: OpenApiDocument): Html {
  const description = document.tags?.find(({ name }) => name === 'Event types')?.description
  return html`
    <section class="group" aria-labelledby="tag-event-types">
      <h2 id="tag-event-types">Event types</h2>
      ${markdown(description)}
      ${eventsOf(document).map(
        ({ id, type, description, schema, example }) => html`
      <article class="operation" id="${id}" aria-labelledby="${id}-title" tabindex="-1">
        <div class="about">
          <h3 id="${id}-title"><a href="#${id}">${type}</a></h3>
          ${markdown(description)}
          <h4>Fields</h4>
          ${fieldList(document, fieldsOf(document, schema), 'answer', id)}
        </div>
        <div class="side">${codeBlock(JSON.stringify(example, null, 2), 'json', 'Example')}</div>
      </article>`,
      )}
    </section>`
}

function errorSection(document: OpenApiDocument, { responses }: Operation): Html | false {
  const failures = Object.entries(responses).filter(([status]) => Number(status) >= 400)
  if (failures.length === 0) return false
  return html`<details><summary>Errors</summary><dl class="fields">${failures.map(
    ([status, node]) => html`<div class="field"><dt>${status}</dt>
      <dd>${markdown(resolved<Response>(document, node).description)}</dd></div>`,
  )}</dl></details>`
}

/** The script of the page writes the samples, from what is in the form. */
function sampleSection(): Html {
  const languages = Object.entries(sampleLanguages) as [SampleLanguage, string][]
  return html`
    <div class="code samples">
      <div class="code-bar"><h4>Sample</h4>
        <div class="languages" role="group" aria-label="Language">${languages.map(
          ([language, name], at) =>
            html`<button type="button" data-language="${language}" aria-pressed="${at === 0 ? 'true' : 'false'}">${name}</button>`,
        )}</div>${copyButton}</div>
      <pre tabindex="0"><code></code></pre>
    </div>`
}

function exampleSection(answer: Media | undefined): Html | false {
  const received = exampleOf(answer)
  return received !== undefined && codeBlock(JSON.stringify(received, null, 2), 'json', 'Example answer')
}

const slug = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')

/** Lets a long path break before each slash. */
const breakable = (path: string) => path.split('/').map((part, at) => html`${at > 0 && html`<wbr>/`}${part}`)
