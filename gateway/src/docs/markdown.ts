import { isErrorCode } from '@workspace-wallet/contract'
import { Lexer, lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import { codeBlock } from './code-block.ts'
import { type Html, html } from './html.ts'

/** How links are written. @returns the address, or undefined for what these pages do not have */
export type LinkTo = (url: string) => string | undefined

/** Markdown as HTML. Its text is escaped: HTML in it is shown as text. */
export function markdown(text: string | undefined, linkTo: LinkTo = url => url): Html[] {
  return blocks(lexer(text ?? ''), linkTo)
}

/** The Markdown of one paragraph, without the element around it. */
export function inline(text: string | undefined): Html[] {
  return phrases(Lexer.lexInline(text ?? ''), url => url)
}

/** The anchor of a heading, as GitHub makes it. @param text the heading as Markdown */
export function anchorOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

function blocks(tokens: readonly Token[], linkTo: LinkTo): Html[] {
  return (tokens as MarkedToken[]).map(token => block(token, linkTo))
}

function block(token: MarkedToken, linkTo: LinkTo): Html {
  switch (token.type) {
    case 'space':
    case 'def':
      return html``
    case 'hr':
      return html`<hr>`
    case 'heading':
      return heading(token, linkTo)
    case 'paragraph':
      return html`<p>${phrases(token.tokens, linkTo)}</p>`
    case 'code':
      return codeBlock(token.text, token.lang)
    case 'blockquote':
      return html`<blockquote>${blocks(token.tokens, linkTo)}</blockquote>`
    case 'list':
      return list(token as Tokens.List, linkTo)
    case 'table':
      return table(token as Tokens.Table, linkTo)
    case 'text':
      return html`${token.tokens ? phrases(token.tokens, linkTo) : token.text}`
    default:
      return html`${token.raw}`
  }
}

function heading({ depth, text, tokens }: Tokens.Heading, linkTo: LinkTo): Html {
  const id = anchorOf(text)
  const content = phrases(tokens, linkTo, true)
  if (depth === 1) return html`<h1 id="${id}">${content}</h1>`
  const link = html`<a href="#${id}">${content}</a>`
  if (depth === 2) return html`<h2 id="${id}">${link}</h2>`
  return depth === 3 ? html`<h3 id="${id}">${link}</h3>` : html`<h4 id="${id}">${link}</h4>`
}

function list({ ordered, start, items }: Tokens.List, linkTo: LinkTo): Html {
  const rows = items.map(item => html`<li>${blocks(item.tokens, linkTo)}</li>`)
  return ordered ? html`<ol start="${Number(start)}">${rows}</ol>` : html`<ul>${rows}</ul>`
}

/** It scrolls in a box of its own, also with the keyboard. */
function table({ header, rows }: Tokens.Table, linkTo: LinkTo): Html {
  const cells = (row: Tokens.TableCell[]) => row.map(({ tokens }) => html`<td>${phrases(tokens, linkTo)}</td>`)
  return html`<div class="table" tabindex="0" role="group" aria-label="Table"><table>
    <thead><tr>${header.map(({ tokens, text }) =>
      text === '' ? html`<td></td>` : html`<th scope="col">${phrases(tokens, linkTo)}</th>`,
    )}</tr></thead>
    <tbody>${rows.map(row => html`<tr>${cells(row)}</tr>`)}</tbody></table></div>`
}

/** @param isInLink whether they are in a link, which can contain no other link */
function phrases(tokens: readonly Token[], linkTo: LinkTo, isInLink = false): Html[] {
  return (tokens as MarkedToken[]).map(token => phrase(token, linkTo, isInLink))
}

function phrase(token: MarkedToken, linkTo: LinkTo, isInLink: boolean): Html {
  switch (token.type) {
    case 'strong':
      return html`<strong>${phrases(token.tokens, linkTo, isInLink)}</strong>`
    case 'em':
      return html`<em>${phrases(token.tokens, linkTo, isInLink)}</em>`
    case 'codespan':
      return code(token.text, isInLink)
    case 'br':
      return html`<br>`
    case 'link':
      return link(token as Tokens.Link, linkTo)
    case 'escape':
      return html`${token.text}`
    case 'text':
      return html`${'tokens' in token && token.tokens ? phrases(token.tokens, linkTo, isInLink) : token.text}`
    default:
      return html`${token.raw}`
  }
}

/** Error codes link to their pages. */
function code(text: string, isInLink: boolean): Html {
  const element = html`<code>${text}</code>`
  return isErrorCode(text) && !isInLink ? html`<a href="/docs/errors/${text}">${element}</a>` : element
}

/** Only addresses of pages: a `javascript:` address stays text. */
function link({ href, tokens }: Tokens.Link, linkTo: LinkTo): Html {
  const url = /^(https?:\/\/|[/#.\w-]+($|[#/?.]))/.test(href) ? linkTo(href) : undefined
  const content = phrases(tokens, linkTo, true)
  return url === undefined ? html`${content}` : html`<a href="${url}">${content}</a>`
}
