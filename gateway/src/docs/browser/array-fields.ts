import { element } from './elements.ts'

/** Makes the buttons work that add items to arrays and remove them. @param prepare prepares the inputs of a new item */
export function prepareArrays(form: HTMLFormElement, prepare: (item: HTMLElement, place: number) => void): void {
  for (const fieldset of form.querySelectorAll<HTMLFieldSetElement>('fieldset.array')) {
    const items = fieldset.querySelector<HTMLElement>('.items')
    if (!items) continue
    const templates = [...fieldset.querySelectorAll('template')]
    const add = (template: HTMLTemplateElement) => {
      const item = (template.content.cloneNode(true) as DocumentFragment).firstElementChild as HTMLElement
      items.append(item)
      prepare(item, items.children.length - 1)
      return item
    }
    const buttons = templates.map(template => {
      const button = element('button', { type: 'button', class: 'plain' }, `Add a ${template.dataset.adds}`)
      button.addEventListener('click', () => {
        add(template).querySelector<HTMLElement>('input, select')?.focus()
        changed(form)
      })
      return button
    })
    items.after(element('div', { class: 'adds' }, ...buttons))
    items.addEventListener('click', event => {
      const remove = (event.target as Element).closest('[data-remove]')
      if (!remove) return
      remove.closest('.item')!.remove()
      buttons[0]!.focus()
      changed(form)
    })
    if (fieldset.dataset.kind === 'objects') add(templates[0]!)
  }
}

/** As if the reader had typed: what depends on the form, such as its sample, follows. */
function changed(form: HTMLFormElement): void {
  form.dispatchEvent(new Event('input', { bubbles: true }))
}
