/** Imported before everything else, because it changes how the modules after it start. */
import { config } from 'zod'

type Policies = { createPolicy: (name: string, rules: { createHTML: (text: string) => string }) => unknown }
const { trustedTypes } = globalThis as { trustedTypes?: Policies }

// The only text that may become HTML is that of Mantine's style elements, which contains no markup. The browser refuses all other
// text, so nothing that a client wrote can become markup, whatever a page does with it.
trustedTypes?.createPolicy('default', {
  createHTML(text) {
    if (text.includes('<')) throw new TypeError('text is no markup')
    return text
  },
})

/** Of this response: style elements need it. */
export const styleNonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? ''
// Where the library that keeps the page from scrolling behind a dialog looks for it.
Object.assign(globalThis, { __webpack_nonce__: styleNonce })

// Otherwise zod tries whether it may compile schemas, which the policy forbids.
config({ jitless: true })
