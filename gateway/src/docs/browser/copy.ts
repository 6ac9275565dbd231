import { elementById } from './elements.ts'

/** How long a button says that it copied. */
const shownMs = 2000

/** Makes the buttons that copy a block of code or an ID work, also those that are added later. */
export function prepareCopying(): void {
  document.addEventListener('click', event => {
    const button = (event.target as Element).closest<HTMLButtonElement>('button[data-copy], button.id')
    if (button) void copyBy(button)
  })
}

async function copyBy(button: HTMLButtonElement): Promise<void> {
  const isId = button.matches('.id')
  const text = isId ? button.textContent : textOf(button.closest('.code')!)
  const isCopied = await copy(text)
  const sentence = isCopied ? (isId ? `Copied ${text}` : 'Copied') : 'The browser refused to copy.'
  elementById('announcement', HTMLElement).textContent = sentence
  if (isId) {
    button.classList.toggle('copied', isCopied)
    setTimeout(() => button.classList.remove('copied'), shownMs)
  } else {
    button.textContent = isCopied ? 'Copied' : 'Refused'
    setTimeout(() => {
      button.textContent = 'Copy'
    }, shownMs)
  }
}

/** The code, or only the commands of a session in a shell. */
function textOf(block: Element): string {
  const commands = [...block.querySelectorAll('[data-command]')]
  if (commands.length > 0) return `${commands.map(({ textContent }) => textContent).join('\n')}\n`
  return block.querySelector('pre')!.textContent
}

/** Browsers offer the clipboard to pages from HTTPS and localhost only. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}
