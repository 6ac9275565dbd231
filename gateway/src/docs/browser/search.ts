import { makeCombobox } from './combobox.ts'
import { element, elementById } from './elements.ts'
import { type Entry, findEntries } from './search-rank.ts'

const kindNames: Record<Entry['kind'], string> = {
  operation: 'Operation',
  field: 'Field',
  error: 'Error code',
  event: 'Event',
  guide: 'Guide',
}

/**
 * The search of all pages. The index is loaded once the page is shown, so that a search needs no network. `/` goes to the
 * input, as long as the reader does not write elsewhere.
 *
 * @param open goes to what was found
 */
export function prepareSearch(open = (url: string) => location.assign(url)): void {
  const input = elementById('search', HTMLInputElement)
  let entries: Entry[] = []
  makeCombobox(input, {
    isFirstMarked: true,
    optionsFor: text =>
      findEntries(entries, text).map(({ kind, title, within, url }) => ({
        value: url,
        content: [
          element('span', {}, title),
          element('span', { class: 'amount' }, [kindNames[kind], within].filter(Boolean).join(' · ')),
        ],
      })),
    choose({ value }) {
      input.value = ''
      input.blur()
      open(value)
    },
  })
  document.addEventListener('keydown', event => {
    const isWriting = (event.target as Element).closest('input, textarea, select, [contenteditable]')
    if (event.key !== '/' || isWriting || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    input.focus({ preventScroll: true })
    input.select()
  })
  void load()

  async function load(): Promise<void> {
    try {
      const response = await fetch('/docs/assets/search.json')
      entries = (await response.json()) as Entry[]
    } catch {
      input.placeholder = 'Search is unavailable'
    }
    // For a reader who was faster.
    if (input.value !== '') input.dispatchEvent(new Event('input'))
  }
}
