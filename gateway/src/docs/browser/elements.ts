import { type Language, tokensOf } from './highlight.ts'

/** The element with this ID. @throws Error if the page has none of this type */
export function elementById<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id)
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} ${id}`)
  return found
}

/** A new element. All content is text or nodes, never HTML, so that a response cannot add markup to the page. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value)
  created.append(...children)
  return created
}

/** Preformatted text. */
export function codeBlock(...children: (Node | string)[]): HTMLPreElement {
  return element('pre', {}, element('code', {}, ...children))
}

/** JSON with colors, in a box that scrolls, also with the keyboard. Wrapped lines would lose their indentation. */
export function jsonBlock(text: string): HTMLElement {
  const bar = element(
    'div',
    { class: 'code-bar' },
    element('button', { type: 'button', class: 'plain', 'data-copy': '' }, 'Copy'),
  )
  const code = element('code', {}, ...coloredText(text, 'json'))
  return element('div', { class: 'code' }, bar, element('pre', { class: 'json', tabindex: '0' }, code))
}

/** The IDs of the service. `copy.ts` copies them. */
const idPattern = /^"((?:wal|trf|hld|flw|evt|whk|wsp)_[0-9a-z]{26})"$/

/** A text in the colors of its language. IDs in JSON are buttons that copy them. */
export function coloredText(text: string, language: Language): Node[] {
  return tokensOf(text, language).map(([kind, piece]) => {
    if (!kind) return document.createTextNode(piece)
    const id = language === 'json' && kind === 'string' ? idPattern.exec(piece)?.[1] : undefined
    if (id === undefined) return element('span', { class: `t-${kind}` }, piece)
    return element('span', { class: 't-string' }, '"', idButton(id), '"')
  })
}

/** An ID that is copied by a click. */
export function idButton(id: string): HTMLButtonElement {
  return element('button', { type: 'button', class: 'id', title: 'Copy' }, id)
}

/** A collapsed section. */
export function folded(summary: string, ...children: Node[]): HTMLDetailsElement {
  return element('details', {}, element('summary', {}, summary), ...children)
}

/** A text with its line ends shown, because a signature depends on them. */
export function withLineEnds(text: string): Node[] {
  return text.split(/(\r?\n|\r)/).flatMap(piece => {
    if (!/^[\r\n]/.test(piece)) return [document.createTextNode(piece)]
    const mark = element('span', { class: 'line-end', title: piece === '\n' ? 'line feed' : 'carriage return' })
    mark.textContent = piece.replace('\r', '\\r').replace('\n', '↵')
    return [mark, document.createTextNode('\n')]
  })
}
