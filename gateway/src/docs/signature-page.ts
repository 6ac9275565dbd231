import { type Html, html } from './html.ts'
import { secretInput } from './page.ts'

/** The body of the signature debugger. `browser/signature.ts` makes it work, without the network. */
export function signatureBody(mistakes: Record<string, string>): Html {
  return html`
<main id="main" class="debugger" tabindex="-1">
  <h1>Signature debugger</h1>
  <p class="lead">If your request gets <code>GA2012</code>, enter what your client sent. This page computes the signature
    stage by stage, shows where your client differs, and tries the usual mistakes. Nothing that you enter leaves this page.</p>
  <div class="columns">
  <section id="result" aria-labelledby="result-title">
    <h2 id="result-title">Result</h2>
    <div id="verdict" role="status"><p>Enter the request, its signature and the secret.</p></div>
  </section>
  <form id="request" aria-labelledby="request-title" autocomplete="off" novalidate>
    <h2 id="request-title">What you sent</h2>
    ${area('pasted', 'Curl command or HTTP request', 5, 'Optional. Paste it to fill in the fields below.')}
    <div id="pasted-problems" role="status"></div>
    <div class="pair">
      ${field('method', 'Method', '', 'GET')}
      ${field('target', 'URL or path', 'As sent, with its query string.')}
    </div>
    <div class="pair">
      ${field('api-key', 'X-Api-Key')}
      ${field('timestamp', 'X-Timestamp')}
    </div>
    <div class="pair">
      ${field('nonce', 'X-Nonce')}
      ${field('signature', 'X-Signature')}
    </div>
    ${area('body', 'Body', 4, 'Exactly the text that was sent, with line feeds as line ends. Leave it empty if there was none.')}
    ${secretInput('secret')}
    <details class="optional"><summary>What your client computed on the way</summary>
      ${field('own-hash', 'Your body hash')}
      ${area('own-message', 'Your canonical message', 5, 'With its line ends. A line end after the last line counts.')}
    </details>
  </form>
  <ol id="stages" class="stages" aria-label="Stages of the signature"></ol>
  </div>
  <section aria-labelledby="mistakes-title">
    <h2 id="mistakes-title">The usual mistakes</h2>
    <p>If the signature differs, this page signs your request with each of these mistakes, and compares.</p>
    <ul id="mistakes" class="mistakes">${Object.entries(mistakes).map(
      ([name, sentence]) => html`<li data-mistake="${name}">${sentence}</li>`,
    )}</ul>
  </section>
</main>`
}

function field(id: string, label: string, hint = '', value = ''): Html {
  return html`
    <div class="row">
      <label for="${id}">${label}</label>
      <input id="${id}" type="text" value="${value}" autocomplete="off" spellcheck="false" autocapitalize="off"
        ${hint && html`aria-describedby="${id}-hint"`}>
      ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
    </div>`
}

function area(id: string, label: string, rows: number, hint: string): Html {
  return html`
    <div class="row">
      <label for="${id}">${label}</label>
      <textarea id="${id}" rows="${rows}" autocomplete="off" spellcheck="false" autocapitalize="off"
        aria-describedby="${id}-hint"></textarea>
      <p class="hint" id="${id}-hint">${hint}</p>
    </div>`
}
