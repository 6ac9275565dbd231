/**
 * The input of a secret. The secret is only its value, which is in memory: not in storage, a URL or an attribute. It is
 * removed when the reader leaves the page, so that going back does not bring it back.
 */
export function prepareSecret(input: HTMLInputElement): void {
  const toggle = document.querySelector<HTMLButtonElement>(`button[aria-controls="${input.id}"]`)!
  const show = (isShown: boolean) => {
    input.type = isShown ? 'text' : 'password'
    toggle.textContent = isShown ? 'Hide' : 'Show'
    toggle.setAttribute('aria-pressed', String(isShown))
  }
  toggle.addEventListener('click', () => show(input.type === 'password'))
  addEventListener('pagehide', () => {
    input.value = ''
    show(false)
  })
}

/** Browsers offer Web Crypto to pages from https: and localhost only. */
export const insecurePage =
  'This page was loaded over plain HTTP, and browsers offer cryptography only over HTTPS and from localhost. Open it over HTTPS, or on the machine of the gateway at http://127.0.0.1.'
