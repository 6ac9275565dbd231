import { type Html, html } from './html.ts'
import { inline } from './markdown.ts'
import { mergedSchema, type OpenApiDocument, type Schema } from './openapi-document.ts'
import { type Field, fieldsOf, objectsIn, typeOf } from './schema-fields.ts'

/** An input of the form. Its attributes tell the script of the page what it is for. */
type Input = Field & { in: 'path' | 'query' | 'body'; example: unknown }

type Form = { document: OpenApiDocument; id: string; method: string; path: string; inputs: Input[] }

/** The form that sends one operation. `browser/reference.ts` makes it work. */
export function operationForm(form: Form): Html {
  const { id, method, path, inputs } = form
  const always = inputs.filter(isAlwaysShown)
  const optional = inputs.filter(input => !isAlwaysShown(input))
  return html`
    <form class="try" id="${id}-try" tabindex="-1" data-operation="${id}" data-method="${method}" data-path="${path}" aria-labelledby="${id}-try-title ${id}-title" autocomplete="off" novalidate>
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

function formRow(form: Form, input: Input): Html {
  const { document, id, path } = form
  const { name, schema, isRequired, in: place, example } = input
  if (schema.items) return arrayRow(form, input, mergedSchema(document, schema.items))
  const control = `${id}-${place}-${name}`
  const suggestions = suggestionsFor(name, path, schema)
  const attributes = html`id="${control}" data-in="${place}" aria-describedby="${control}-hint"`
  return html`
    <div class="row">
      <label for="${control}"><code>${name}</code></label>
      ${controlFor(attributes, document, input, suggestions)}
      <p class="hint" id="${control}-hint">${
        isNewBizId(name, place)
          ? 'Generated, and a new one after each success.'
          : suggestions
            ? hintFor(suggestions)
            : exampleHint(example, isRequired)
      }</p>
    </div>`
}

/** An input or a selection, with the attributes that all have. */
function controlFor(attributes: Html, document: OpenApiDocument, input: Input, suggestions: string | undefined): Html {
  const { name, schema, isRequired, in: place, example } = input
  const type = typeOf(document, schema)
  const isGenerated = isNewBizId(name, place)
  // IDs of the examples exist in no other workspace.
  const isProposed = isRequired && !isGenerated && (!suggestions || suggestions === 'currencies')
  const all = html`${attributes} name="${name}" data-type="${type}"
    ${example !== undefined && example !== null && html`data-example="${String(example)}"`} ${isRequired && html`required`}`
  const choices = type === 'boolean' ? [true, false] : schema.enum
  if (choices && !suggestions)
    // None is selected, because a careless click must not freeze a wallet.
    return html`<select ${all}><option value=""></option>${choices.map(choice => html`<option>${String(choice)}</option>`)}</select>`
  return html`<input ${all} type="text" value="${isProposed ? text(example) : ''}" spellcheck="false" autocapitalize="off"
    autocomplete="off" ${suggestions && html`data-suggestions="${suggestions}"`}>`
}

/** An array: boxes to check, rows of one value each, or rows of several fields. */
function arrayRow(form: Form, input: Input, items: Schema): Html {
  const { document, id } = form
  const { name, in: place, isRequired, description } = input
  const control = `${id}-${place}-${name}`
  const objects = objectsIn(document, items)
  const kind = items.enum ? 'choices' : objects.length > 0 ? 'objects' : 'values'
  return html`
    <fieldset class="row array" id="${control}" data-in="${place}" data-kind="${kind}" data-name="${name}">
      <legend><code>${name}</code></legend>
      ${
        kind === 'choices'
          ? choiceBoxes(items.enum!, place === 'body' && !isRequired && /Empty: all/.test(description ?? ''))
          : kind === 'values'
            ? valueRows(name, items)
            : objectRows(form, objects)
      }
    </fieldset>`
}

/** @param hasEmpty whether an empty array differs from none: the fields of an update that are left out do not change */
function choiceBoxes(values: unknown[], hasEmpty: boolean): Html {
  return html`<div class="choices">${values.map(
    value => html`<label><input type="checkbox" value="${String(value)}"> <code>${String(value)}</code></label>`,
  )}${hasEmpty && html`<label><input type="checkbox" value=""> <code>[]</code>, all</label>`}</div>`
}

/** Rows of one value. A value of fields and directions is chosen, so that nobody has to write it. */
function valueRows(name: string, { pattern = '' }: Schema): Html {
  const fields = /^\^\(([\w|]+)\),\(asc\|desc\)\$$/.exec(pattern)?.[1]?.split('|') ?? []
  const choices = fields.flatMap(field => [`${field},asc`, `${field},desc`])
  const control =
    choices.length > 0
      ? html`<select data-item aria-label="${name}"><option value=""></option>${choices.map(choice => html`<option>${choice}</option>`)}</select>`
      : html`<input data-item aria-label="${name}" type="text" spellcheck="false" autocapitalize="off" autocomplete="off">`
  return html`<template data-adds="${name}"><div class="item">${control} ${removeButton}</div></template>
    <div class="items"></div>`
}

const removeButton = html`<button type="button" class="plain" data-remove>Remove</button>`

/** Rows of fields, a template for each kind of object. Only a batch has several: transfers, and reversals of others. */
function objectRows(form: Form, objects: Schema[]): Html {
  const templates = objects.map(object => {
    const title = object.required?.includes('reversesTransferId') ? 'reversal' : 'transfer'
    const fields = fieldsOf(form.document, object)
    const isShown = ({ isRequired, name }: Field) => isRequired || name === 'bizId'
    const optional = fields.filter(field => !isShown(field))
    return html`<template data-adds="${title}"><fieldset class="item" data-item>
      <legend>${title[0]!.toUpperCase() + title.slice(1)}</legend>
      ${fields.filter(isShown).map(field => objectField(form, field))}
      <details class="optional"><summary>Optional: ${optional.map(({ name }) => name).join(', ')}</summary>
        ${optional.map(field => objectField(form, field))}</details>
      ${removeButton}</fieldset></template>`
  })
  return html`${templates}<div class="items"></div>`
}

/** A field of an object in an array. Its label is around it: there is no ID, because there may be many. */
function objectField({ document, path }: Form, field: Field): Html {
  const { name, schema } = field
  const suggestions = suggestionsFor(name, path, schema)
  const example = schema.examples?.[0] ?? (name === 'amount' ? '1.00' : name === 'currency' ? 'USD' : undefined)
  const input: Input = { ...field, in: 'body', example }
  const label = html`<label><code>${name}</code> ${controlFor(html`data-field`, document, input, suggestions)}</label>`
  return html`<div class="row">${label}</div>`
}

/** The list of values that the page offers for a field: IDs of the workspace, or all currencies. */
function suggestionsFor(name: string, path: string, schema: Schema): string | undefined {
  if (/walletId$/i.test(name)) return 'wallets'
  if (/transferId$/i.test(name)) return 'transfers'
  if (name === 'holdId') return 'holds'
  if (name === 'webhookId') return 'webhooks'
  if (name === 'bizId' && path.includes('{bizId}')) return path.includes('/hold/') ? 'holds' : 'transfers'
  return (schema.enum?.length ?? 0) > mostSelectable ? 'currencies' : undefined
}

/** A longer list of values is searched instead. */
const mostSelectable = 16

/** The operations whose responses fill the lists of IDs. */
const listTitles: Record<string, string> = {
  transfers: 'List transfer orders',
  holds: 'List holds',
  webhooks: 'List webhooks',
}

function hintFor(suggestions: string): string {
  if (suggestions === 'wallets') return 'Choose one of your wallets, or enter any ID.'
  if (suggestions === 'currencies') return 'Choose a code, or enter one.'
  return `Enter an ID, or send “${listTitles[suggestions]}” first to choose one.`
}

function exampleHint(example: unknown, isRequired: boolean): Html | string {
  return isRequired || example === undefined || example === null ? '' : html`Such as ${inline(`\`${text(example)}\``)}.`
}

const text = (value: unknown) => (value === undefined || value === null ? '' : String(value))
