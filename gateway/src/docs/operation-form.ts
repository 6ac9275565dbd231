import { type Html, html } from './html.ts'
import { inline } from './markdown.ts'
import type { OpenApiDocument, Schema } from './openapi-document.ts'
import { type Field, fieldsOf, typeOf } from './schema-fields.ts'

/** An input of the form. Its attributes tell the script of the page what it is for. */
type Input = Field & { in: 'path' | 'query' | 'body'; example: unknown }

type Form = { document: OpenApiDocument; id: string; method: string; path: string; inputs: Input[] }

/** The form that sends one operation. `browser/reference.ts` makes it work. */
export function operationForm(form: Form): Html {
  const { id, method, path, inputs } = form
  const always = inputs.filter(isAlwaysShown)
  const optional = inputs.filter(input => !isAlwaysShown(input))
  return html`
    <form class="try" id="${id}-try" tabindex="-1" data-method="${method}" data-path="${path}" aria-labelledby="${id}-try-title ${id}-title" autocomplete="off" novalidate>
      <h4 id="${id}-try-title">Try it</h4>
      ${always.map(input => formRow(form, input))}
      ${
        optional.length > 0 &&
        html`<details class="optional"><summary>Optional: ${optional.map(({ name }) => name).join(', ')}</summary>
          ${optional.map(input => formRow(form, input))}</details>`
      }
      <button type="submit">Send</button>
      <div class="outcome" role="status"></div>
    </form>`
}

/** A command without its bizId is not safe to repeat. */
const isAlwaysShown = ({ isRequired, name, in: place }: Input) => isRequired || isNewBizId(name, place)

/** A name that the reader chooses. The script of the page generates one. */
const isNewBizId = (name: string, place: string) => name === 'bizId' && place === 'body'

/** The inputs for the body of an operation. */
export function bodyInputs(document: OpenApiDocument, schema: Schema | undefined, example: unknown): Input[] {
  if (!schema) return []
  return fieldsOf(document, schema).map(field => ({
    ...field,
    in: 'body',
    example: (example as Record<string, unknown> | undefined)?.[field.name],
  }))
}

/** The inputs for the parameters of an operation. */
export function parameterInputs(parameters: (Field & { in: string; example: unknown })[]): Input[] {
  return parameters.filter((each): each is Input => each.in === 'path' || each.in === 'query')
}

function formRow({ document, id, path }: Form, input: Input): Html {
  const { name, schema, isRequired, in: place, example } = input
  const control = `${id}-${place}-${name}`
  const type = typeOf(document, schema)
  const suggestions = suggestionsFor(name, path)
  const isGenerated = isNewBizId(name, place)
  // IDs of the examples exist in no other workspace.
  const value = isRequired && !suggestions && !isGenerated ? example : undefined
  const attributes = html`id="${control}" name="${name}" data-in="${place}" data-type="${type}"
    aria-describedby="${control}-hint" ${isRequired && html`required`}`
  return html`
    <div class="row">
      <label for="${control}"><code>${name}</code></label>
      ${controlFor(attributes, schema, type, value, suggestions)}
      <p class="hint" id="${control}-hint">${
        isGenerated
          ? 'Generated, and a new one after each success.'
          : suggestions
            ? hintFor(suggestions)
            : exampleHint(type, example, isRequired)
      }</p>
    </div>`
}

function controlFor(
  attributes: Html,
  schema: Schema,
  type: string,
  value: unknown,
  suggestions: string | undefined,
): Html {
  const choices = type === 'boolean' ? [true, false] : schema.enum
  if (choices && choices.length <= 12)
    // None is selected, because a careless click must not freeze a wallet.
    return html`<select ${attributes}><option value=""></option>${choices.map(choice => html`<option>${String(choice)}</option>`)}</select>`
  if (/array|object/.test(type))
    return html`<textarea ${attributes} rows="${linesOf(value)}" spellcheck="false">${json(value)}</textarea>`
  return html`<input ${attributes} type="text" value="${text(value)}" spellcheck="false" autocapitalize="off"
    autocomplete="off" ${suggestions && html`list="${suggestions}"`}>`
}

/** The list of IDs that the page offers for a field: those of wallets, and of transfers, holds or webhooks in its responses. */
function suggestionsFor(name: string, path: string): string | undefined {
  if (/walletId$/i.test(name)) return 'wallets'
  if (/transferId$/i.test(name)) return 'transfers'
  if (name === 'holdId') return 'holds'
  if (name === 'webhookId') return 'webhooks'
  if (name === 'bizId' && path.includes('{bizId}')) return path.includes('/hold/') ? 'holds' : 'transfers'
  return undefined
}

/** The operations whose responses fill the lists of IDs. */
const listTitles: Record<string, string> = {
  transfers: 'List transfer orders',
  holds: 'List holds',
  webhooks: 'List webhooks',
}

function hintFor(suggestions: string): string {
  return suggestions === 'wallets'
    ? 'Choose one of your wallets, or enter any ID.'
    : `Enter an ID, or send “${listTitles[suggestions]}” first to choose one.`
}

function exampleHint(type: string, example: unknown, isRequired: boolean): Html | string {
  if (/array|object/.test(type))
    return isRequired
      ? 'JSON.'
      : html`JSON${example !== undefined && html`, such as <code>${JSON.stringify(example)}</code>`}.`
  return isRequired || example === undefined || example === null ? '' : html`Such as ${inline(`\`${text(example)}\``)}.`
}

const text = (value: unknown) => (value === undefined || value === null ? '' : String(value))
const json = (value: unknown) => (value === undefined ? '' : JSON.stringify(value, null, 2))
const linesOf = (value: unknown) => Math.min(16, Math.max(2, json(value).split('\n').length))
