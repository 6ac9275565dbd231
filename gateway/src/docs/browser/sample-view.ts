import { coloredText, elementById } from './elements.ts'
import { readSample } from './request-form.ts'
import { type SampleLanguage, sampleOf } from './samples.ts'

/** The sample of each operation follows its form. All samples are in the language that the reader chose last. */

const key = 'docs-language'
const shown = new Set<Element>()
let language: SampleLanguage = 'curl'

export function prepareSamples(): void {
  choose(stored())
  const observer = new IntersectionObserver(
    entries => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) shown.delete(target)
        else if (!shown.has(target)) {
          shown.add(target)
          write(target)
        }
      }
    },
    { rootMargin: '100%' },
  )
  for (const section of document.querySelectorAll('.samples')) observer.observe(section)
  document.addEventListener('input', event => {
    const section = (event.target as Element).closest('article')?.querySelector('.samples')
    if (section) write(section)
  })
  elementById('main', HTMLElement).addEventListener('click', event => {
    const button = (event.target as Element).closest<HTMLElement>('button[data-language]')
    if (!button) return
    // The text above may get longer or shorter: the button stays where it is.
    const before = button.getBoundingClientRect().top
    choose(button.dataset.language as SampleLanguage)
    scrollBy(0, button.getBoundingClientRect().top - before)
  })
}

/** Writes the samples on the screen again, after the page has filled in forms. */
export function updateSamples(): void {
  for (const section of shown) write(section)
}

function choose(chosen: SampleLanguage): void {
  language = chosen
  try {
    localStorage.setItem(key, language)
  } catch {
    // Without storage, the choice is lost with the page.
  }
  for (const button of document.querySelectorAll<HTMLElement>('button[data-language]'))
    button.setAttribute('aria-pressed', String(button.dataset.language === language))
  updateSamples()
}

function stored(): SampleLanguage {
  try {
    const text = localStorage.getItem(key)
    return text === 'typescript' || text === 'python' || text === 'go' ? text : 'curl'
  } catch {
    return 'curl'
  }
}

function write(section: Element): void {
  const form = section.closest('article')!.querySelector<HTMLFormElement>('form.try')!
  const text = sampleOf(language, location.origin, readSample(form))
  section.querySelector('code')!.replaceChildren(...coloredText(text, language === 'curl' ? 'shell' : language))
}
