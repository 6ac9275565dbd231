import { type Html, html } from './html.ts'

/** `modules`: the URLs of the script and of all modules that it imports. The script is the first. */
type PageContent = {
  path: string
  title: string
  description: string
  modules: string[]
  body: Html
  /** The path of the same page as Markdown, if there is one. */
  markdown?: string | undefined
}

/** The links at the top, and what the paths of their pages begin with. */
const pages: [path: string, label: string, others: RegExp][] = [
  ['/docs/guides', 'Guides', /^\/docs\/(?!errors|changelog|signature)./],
  ['/docs', 'API reference', /^\/docs$/],
  ['/docs/errors', 'Errors', /^\/docs\/errors/],
  ['/docs/changelog', 'Changelog', /^\/docs\/changelog$/],
  ['/docs/signature', 'Signature debugger', /^\/docs\/signature$/],
]

/** A whole page, as text. */
export function pageText({ path, title, description, modules, body, markdown }: PageContent): string {
  const links = pages.map(
    ([href, label, others]) =>
      html`<a href="${href}" ${others.test(path) && html`aria-current="${href === path ? 'page' : 'true'}"`}>${label}</a>`,
  )
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Workspace Wallet</title>
<meta name="description" content="${description}">
<link rel="icon" href="/docs/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/assets/docs.css">
${
  markdown &&
  html`<link rel="alternate" type="text/markdown" href="${markdown}">
`
}<script src="/docs/assets/theme.js"></script>
${modules.slice(1).map(
  url => html`<link rel="modulepreload" href="${url}">
`,
)}<script type="module" src="${modules[0]}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
  <a class="name" href="/docs">Workspace Wallet</a>
  <nav aria-label="Pages">${links}<a href="/openapi.json">OpenAPI</a></nav>
  <search><label class="hidden" for="search">Search the documentation</label>
    <input id="search" type="text" placeholder="Search ( / )" autocomplete="off" spellcheck="false" autocapitalize="off"></search>
  <label class="theme"><span class="hidden">Theme</span><select id="theme">
    <option value="">System</option><option value="light">Light</option><option value="dark">Dark</option></select></label>
</header>
${body}
${markdown && html`<footer class="notice"><a href="${markdown}">This page as Markdown</a></footer>`}
<div id="announcement" class="hidden" role="status"></div>
<noscript><p class="notice">The text can be read without JavaScript. Requests can be sent, samples shown, and signatures checked only with it.</p></noscript>
</body>
</html>
`.html
}

/** The input for the API secret. `browser/secret-input.ts` makes it work. */
export function secretInput(id: string): Html {
  return html`
    <div class="row">
      <label for="${id}">API secret</label>
      <div class="secret">
        <input id="${id}" type="password" autocomplete="off" spellcheck="false" autocapitalize="off"
          aria-describedby="${id}-hint" data-1p-ignore data-lpignore="true" data-bwignore>
        <button type="button" class="plain" aria-pressed="false" aria-controls="${id}">Show</button>
      </div>
      <p class="hint" id="${id}-hint">Stays in the memory of this page until you leave or reload it. It is never sent or stored.</p>
    </div>`
}
