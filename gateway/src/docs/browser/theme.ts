/**
 * The theme that the reader chose. A classic script, because it must run before the page is painted: a module would show
 * the other theme first. It runs again when the page exists, to prepare the switch.
 */
{
  const key = 'docs-theme'
  const apply = (theme: string) => {
    if (theme) document.documentElement.dataset.theme = theme
    else delete document.documentElement.dataset.theme
  }
  /** Browsers can refuse storage: the choice is then lost with the page. */
  const stored = () => {
    try {
      return localStorage.getItem(key) ?? ''
    } catch {
      return ''
    }
  }
  const store = (theme: string) => {
    try {
      if (theme) localStorage.setItem(key, theme)
      else localStorage.removeItem(key)
    } catch {}
  }
  apply(stored())
  document.addEventListener('DOMContentLoaded', () => {
    const select = document.querySelector<HTMLSelectElement>('#theme')
    if (!select) return
    select.value = document.documentElement.dataset.theme ?? ''
    select.addEventListener('change', () => {
      apply(select.value)
      store(select.value)
    })
  })
}
