import { languageOf, tokensOf } from './browser/highlight.ts'
import { type Html, html } from './html.ts'

/** `browser/copy.ts` makes it work. */
export const copyButton = html`<button type="button" class="plain" data-copy>Copy</button>`

/** A text with the colors of its language, and a button that copies it. It scrolls, also with the keyboard. */
export function codeBlock(text: string, language = '', title = ''): Html {
  return html`<div class="code"><div class="code-bar">${title && html`<h4>${title}</h4>`}${copyButton}</div><pre tabindex="0"><code>${colored(text, language)}</code></pre></div>`
}

function colored(text: string, language: string): Html[] {
  if (language === 'console') return session(text)
  const known = languageOf(language)
  if (!known) return [html`${text}`]
  return tokensOf(text, known).map(([kind, piece]) =>
    kind ? html`<span class="t-${kind}">${piece}</span>` : html`${piece}`,
  )
}

/** A session in a shell: `browser/copy.ts` copies its commands only. A backslash at its end continues a command. */
function session(text: string): Html[] {
  let isContinued = false
  return text.split('\n').map((line, at) => {
    const end = at === 0 ? '' : '\n'
    const [prompt, command] = line.startsWith('$ ') ? ['$ ', line.slice(2)] : ['', line]
    const isCommand = prompt !== '' || isContinued
    isContinued = isCommand && line.endsWith('\\')
    if (!isCommand) return html`${end}${line}`
    return html`${end}<span class="t-comment">${prompt}</span><span data-command>${colored(command, 'shell')}</span>`
  })
}
