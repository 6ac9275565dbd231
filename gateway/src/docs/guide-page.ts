import { isErrorCode } from '@workspace-wallet/contract'
import { type Html, html } from './html.ts'
import { markdown } from './markdown.ts'
import { linksOf, type SitePage, sitePages } from './site-pages.ts'

/** The list of all pages, in groups. @param path the page that is shown */
function pageList(path: string): Html {
  const groups = Map.groupBy(sitePages(), ({ group }) => group)
  return html`
<nav class="contents" aria-label="Guides">
  <details open><summary>Guides</summary>
  ${[...groups].map(
    ([group, pages]) => html`<h2>${group}</h2>
    <ul class="plain">${pages.map(
      page => html`
      <li><a href="${page.path}" ${page.path === path && html`aria-current="page"`}>${page.title}</a></li>`,
    )}</ul>`,
  )}
  </details>
</nav>`
}

/** The body of a page that is made of Markdown. */
export function guideBody(page: SitePage): Html {
  return textPage(page.path, markdown(withErrorCodes(page.text), linksOf(page)))
}

/** The first cell of a row that is an error code, as code: codes link to their pages. */
function withErrorCodes(text: string): string {
  return text.replaceAll(/^\| (\w+) \|/gm, (cell, code: string) => (isErrorCode(code) ? `| \`${code}\` |` : cell))
}

/** A page of text beside the list of pages. @param path the entry of the list that it belongs to */
export function textPage(path: string, content: Html | readonly Html[]): Html {
  return html`
<div class="layout">
${pageList(path)}
<main id="main" class="text" tabindex="-1">${content}</main>
</div>`
}
