import { type Html, html } from './html.ts'

/** The Markdown of the descriptions in the OpenAPI document: paragraphs, lists, code, bold text and links. */
export function markdown(text: string | undefined): Html[] {
  return (text ?? '')
    .split(/\n{2,}/)
    .filter(block => block.trim() !== '')
    .map(block => (/^[-*] /.test(block) ? list(block) : html`<p>${inline(block)}</p>`))
}

function list(block: string): Html {
  return html`<ul>${block
    .split(/^[-*] /m)
    .slice(1)
    .map(item => html`<li>${inline(item.trim())}</li>`)}</ul>`
}

const inlinePattern = /`(?<code>[^`]+)`|\*\*(?<bold>[^*]+)\*\*|\[(?<label>[^\]]+)\]\((?<url>[^)\s]+)\)/g

/** The Markdown of one paragraph or list item, without the element around it. */
export function inline(text: string | undefined): Html[] {
  const pieces: Html[] = []
  let end = 0
  for (const match of (text ?? '').matchAll(inlinePattern)) {
    const { code, bold, label, url } = match.groups as Record<string, string | undefined>
    pieces.push(html`${text!.slice(end, match.index)}`)
    if (code !== undefined) pieces.push(html`<code>${code}</code>`)
    else if (bold !== undefined) pieces.push(html`<strong>${inline(bold)}</strong>`)
    else pieces.push(html`<a href="${url}">${inline(label)}</a>`)
    end = match.index + match[0].length
  }
  return [...pieces, html`${(text ?? '').slice(end)}`]
}
