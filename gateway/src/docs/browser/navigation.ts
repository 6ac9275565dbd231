/** Shows in the list of contents where the reader is, folds it where it would hide the page, and opens what a link names. */
export function prepareNavigation(): void {
  const contents = document.querySelector<HTMLDetailsElement>('.contents details')
  if (contents) {
    foldContents(contents)
    followReader(contents)
  }
  addEventListener('hashchange', reveal)
  reveal()
}

function foldContents(contents: HTMLDetailsElement): void {
  const isWide = matchMedia('(min-width: 60rem)')
  const update = () => {
    contents.open = isWide.matches
  }
  update()
  isWide.addEventListener('change', update)
  contents.addEventListener('click', event => {
    if ((event.target as Element).closest('a') && !isWide.matches) contents.open = false
  })
}

/** Marks the link to the part of the page that the reader reads. */
function followReader(contents: HTMLDetailsElement): void {
  const links = new Map<Element, HTMLAnchorElement>()
  for (const link of contents.querySelectorAll<HTMLAnchorElement>('a[href^="#"]')) {
    const target = document.getElementById(decodeURIComponent(link.hash.slice(1)))
    if (target) links.set(target, link)
  }
  const here = contents.querySelector('.here')
  const inView = new Set<Element>()
  const scroller = contents.parentElement!
  const show = () => {
    // The last one: on a phone, the end of the part before a target that a link has scrolled to is in the band as well.
    const current = [...links].findLast(([target]) => inView.has(target))?.[1]
    if (!current || current.ariaCurrent === 'location') return
    for (const link of links.values()) link.removeAttribute('aria-current')
    current.setAttribute('aria-current', 'location')
    if (here) here.textContent = current.dataset.title ?? current.textContent.trim()
    // Only the list scrolls: scrollIntoView would also scroll the page.
    const { offsetTop, offsetHeight } = current
    const isAbove = offsetTop < scroller.scrollTop
    if (isAbove || offsetTop + offsetHeight > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = offsetTop - scroller.clientHeight / 2
  }
  const observer = new IntersectionObserver(
    entries => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) inView.add(target)
        else inView.delete(target)
      }
      show()
    },
    // A band below the bar: what is in it is what the reader reads.
    { rootMargin: '-20% 0px -65% 0px' },
  )
  for (const target of links.keys()) observer.observe(target)
}

/** Unfolds what the address names, such as a field. */
function reveal(): void {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (!target) return
  let isFolded = false
  for (let each = target.parentElement; each; each = each.parentElement)
    if (each instanceof HTMLDetailsElement && !each.open) {
      each.open = true
      isFolded = true
    }
  if (isFolded) target.scrollIntoView()
}
