import { element } from './elements.ts'

/** What can be chosen. `value` is what the input gets. */
export type Option = { value: string; content: (Node | string)[] }

type Behavior = {
  /** The options for what the reader typed; for the empty text, all. */
  optionsFor(text: string): readonly Option[]
  choose(option: Option): void
  /** Whether Enter chooses the first option if none is marked. */
  isFirstMarked?: boolean
}

/** More are not shown: a reader types to narrow them. */
const mostShown = 50
let count = 0

/**
 * Gives an input a list to choose from, as the combobox pattern of WAI-ARIA describes it. The list opens when the reader
 * types, clicks or presses Arrow Down; the input also takes any other text.
 */
export function makeCombobox(input: HTMLInputElement, { optionsFor, choose, isFirstMarked = false }: Behavior): void {
  const list = element('ul', { id: `list-${++count}`, role: 'listbox', class: 'options', hidden: '' })
  list.setAttribute('aria-label', 'Choices')
  const box = element('div', { class: 'combobox' })
  input.replaceWith(box)
  box.append(input, list)
  for (const [name, value] of Object.entries({
    role: 'combobox',
    'aria-autocomplete': 'list',
    'aria-expanded': 'false',
    'aria-controls': list.id,
  }))
    input.setAttribute(name, value)

  let shown: readonly Option[] = []
  let marked = -1

  const mark = (at: number) => {
    marked = at
    for (const [index, item] of [...list.children].entries()) item.setAttribute('aria-selected', String(index === at))
    const current = list.children[at]
    if (current) {
      input.setAttribute('aria-activedescendant', current.id)
      current.scrollIntoView({ block: 'nearest' })
    } else {
      input.removeAttribute('aria-activedescendant')
    }
  }
  const close = () => {
    list.hidden = true
    input.setAttribute('aria-expanded', 'false')
    mark(-1)
  }
  const open = (text: string) => {
    const found = optionsFor(text)
    shown = found.slice(0, mostShown)
    const isComplete = shown.length === 1 && shown[0]!.value === input.value
    if (shown.length === 0 || isComplete) return close()
    list.replaceChildren(
      ...shown.map(({ content }, at) =>
        element('li', { id: `${list.id}-${at}`, role: 'option', 'aria-selected': 'false' }, ...content),
      ),
    )
    if (found.length > shown.length)
      list.append(
        element(
          'li',
          { id: `${list.id}-more`, role: 'option', 'aria-disabled': 'true', 'aria-selected': 'false' },
          `${found.length - shown.length} more: type to find them.`,
        ),
      )
    list.hidden = false
    input.setAttribute('aria-expanded', 'true')
    mark(isFirstMarked ? 0 : -1)
  }
  const take = (option: Option | undefined) => {
    if (!option) return
    close()
    choose(option)
  }

  input.addEventListener('input', () => open(input.value))
  input.addEventListener('click', () => list.hidden && open(isFirstMarked ? input.value : ''))
  input.addEventListener('blur', close)
  input.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      if (list.hidden) return open(isFirstMarked ? input.value : '')
      const step = event.key === 'ArrowDown' ? 1 : -1
      mark((marked + step + shown.length) % shown.length)
    } else if (event.key === 'Enter' && !list.hidden && marked >= 0) {
      event.preventDefault()
      take(shown[marked])
    } else if (event.key === 'Escape' && !list.hidden) {
      event.preventDefault()
      close()
    }
  })
  // The input keeps the focus, so that the list is still open when the click arrives.
  list.addEventListener('mousedown', event => event.preventDefault())
  list.addEventListener('click', event => {
    const item = (event.target as Element).closest('[role="option"]')
    take(shown[[...list.children].indexOf(item!)])
  })
}
