/** Reads the form of an operation. `operation-form.ts` of the gateway writes the attributes. */

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement

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
 * @throws FormFault for a path parameter without a value, and for JSON that cannot be parsed
 */
export function readRequest(form: HTMLFormElement): { method: string; target: string; body: string | undefined } {
  const method = form.dataset.method!
  const controls = [...form.querySelectorAll<Control>('[data-in]')]
  const of = (place: string) => controls.filter(({ dataset }) => dataset.in === place)
  let target = form.dataset.path!
  for (const control of of('path')) {
    if (control.value === '') throw new FormFault(control, `Enter ${control.name}, which is part of the path.`)
    target = target.replace(`{${control.name}}`, encodeURIComponent(control.value))
  }
  const query = new URLSearchParams(of('query').flatMap(queryPairs))
  const hasBody = method !== 'GET'
  return {
    method,
    target: query.size > 0 ? `${target}?${query}` : target,
    body: hasBody ? JSON.stringify(Object.fromEntries(of('body').flatMap(bodyEntries))) : undefined,
  }
}

/** A parameter that can be repeated has one value on each line. */
function queryPairs({ name, value }: Control): [string, string][] {
  return value.split('\n').flatMap(line => (line === '' ? [] : [[name, line] as [string, string]]))
}

/** A field without a value is left out. */
function bodyEntries(control: Control): [string, unknown][] {
  return control.value === '' ? [] : [[control.name, bodyValue(control)]]
}

function bodyValue(control: Control): unknown {
  const { value, name } = control
  const type = control.dataset.type ?? 'string'
  if (/array|object/.test(type)) {
    try {
      return JSON.parse(value)
    } catch (error) {
      throw new FormFault(control, `${name} is not valid JSON: ${(error as Error).message}`)
    }
  }
  if (/integer|number/.test(type) && /^-?\d+(\.\d+)?$/.test(value)) return Number(value)
  if (/boolean/.test(type) && /^(true|false)$/.test(value)) return value === 'true'
  return value
}
