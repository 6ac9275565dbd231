/** Reads the form of an operation. `operation-form.ts` of the gateway writes the attributes. */
import type { SampleRequest } from './client-call.ts'

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement
const controls = 'input, select, textarea'

/** A form that cannot be sent as it is. `control` is the one to correct, and gets the focus. */
export class FormFault extends Error {
  readonly control: HTMLElement

  constructor(control: HTMLElement, message: string) {
    super(message)
    this.control = control
  }
}

/**
 * The request that a form describes. Invalid values are sent as they are, because the server's response says what is wrong.
 *
 * @throws FormFault for a path parameter without a value
 */
export function readRequest(form: HTMLFormElement): { method: string; target: string; body: string | undefined } {
  const empty = fieldsIn(form, 'path').find(field => (field as Control).value === '') as Control | undefined
  if (empty) throw new FormFault(empty, `Enter ${empty.name}, which is part of the path.`)
  const { method, target, body } = requestIn(form, control => control.value)
  return { method, target, body: body === undefined ? undefined : JSON.stringify(body) }
}

/** The request of a sample: as in the form, and with an example for each required value that is still missing. */
export function readSample(form: HTMLFormElement): SampleRequest {
  return requestIn(form, control => {
    const isMissing = control.value === '' && 'required' in control && control.required
    return isMissing ? (control.dataset.example ?? control.name) : control.value
  })
}

type TextOf = (control: Control) => string

function requestIn(form: HTMLFormElement, textOf: TextOf): SampleRequest {
  const { operation, method, path } = form.dataset as { operation: string; method: string; path: string }
  const paths = fieldsIn(form, 'path').map(field => [(field as Control).name, textOf(field as Control)] as const)
  const query = fieldsIn(form, 'query').flatMap(field => queryPairs(field, textOf))
  const target = paths.reduce((text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(value)), path)
  return {
    operationId: operation,
    method,
    target: query.length > 0 ? `${target}?${new URLSearchParams(query)}` : target,
    params: Object.fromEntries(paths),
    query,
    body:
      method === 'GET'
        ? undefined
        : Object.fromEntries(fieldsIn(form, 'body').flatMap(field => bodyEntries(field, textOf))),
  }
}

function fieldsIn(form: HTMLFormElement, place: string): HTMLElement[] {
  return [...form.querySelectorAll<HTMLElement>(`[data-in="${place}"]`)]
}

/** A parameter that can be repeated has several values. */
function queryPairs(field: HTMLElement, textOf: TextOf): [string, string][] {
  if (field instanceof HTMLFieldSetElement)
    return ((arrayIn(field, textOf) ?? []) as string[]).map(value => [field.dataset.name!, value])
  const control = field as Control
  const value = textOf(control)
  return value === '' ? [] : [[control.name, value]]
}

/** A field without a value is left out. */
function bodyEntries(field: HTMLElement, textOf: TextOf): [string, unknown][] {
  if (field instanceof HTMLFieldSetElement) {
    const items = arrayIn(field, textOf)
    return items ? [[field.dataset.name!, items]] : []
  }
  const control = field as Control
  const value = textOf(control)
  return value === '' ? [] : [[control.name, typedValue(control, value)]]
}

/** The items of an array; undefined if there is none. */
function arrayIn(fieldset: HTMLFieldSetElement, textOf: TextOf): unknown[] | undefined {
  if (fieldset.dataset.kind === 'choices') {
    const checked = [...fieldset.querySelectorAll<HTMLInputElement>('input:checked')]
    // The box without a value stands for the empty array.
    return checked.length > 0 ? checked.map(({ value }) => value).filter(value => value !== '') : undefined
  }
  const items = [...fieldset.querySelectorAll<HTMLElement>('.items [data-item]')]
  if (fieldset.dataset.kind === 'values') {
    const values = items.map(item => (item as Control).value).filter(value => value !== '')
    return values.length > 0 ? values : undefined
  }
  const fieldsOf = (item: HTMLElement) => [...item.querySelectorAll<HTMLElement>(controls)]
  return items.map(item => Object.fromEntries(fieldsOf(item).flatMap(field => bodyEntries(field, textOf))))
}

function typedValue(control: Control, value: string): unknown {
  const type = control.dataset.type ?? 'string'
  if (/integer|number/.test(type) && /^-?\d+(\.\d+)?$/.test(value)) return Number(value)
  if (/boolean/.test(type) && /^(true|false)$/.test(value)) return value === 'true'
  return value
}
