/** A piece of HTML. Only `html` creates one, so all other text is escaped. */
export type Html = { readonly html: string }

type Value = Html | string | number | undefined | false | readonly Value[]

/** A template tag: escapes each text, and inserts pieces of HTML and arrays of them as they are. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return { html: strings.reduce((before, after, at) => before + render(values[at - 1]) + after) }
}

function render(value: Value): string {
  if (value === undefined || value === false) return ''
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value))
  return 'html' in value ? value.html : value.map(render).join('')
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => entities[character]!)
}
