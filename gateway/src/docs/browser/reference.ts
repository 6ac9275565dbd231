import type { Credentials } from '@workspace-wallet/client/signing'
import { element, elementById } from './elements.ts'
import { exchange } from './exchange.ts'
import { outcomeOf, problem, wrongSecretSentence } from './outcome.ts'
import { FormFault, readRequest } from './request-form.ts'
import { insecurePage, prepareSecret } from './secret-input.ts'
import { generateBizId, offerWallets, proposeTimes, proposeWallets, rememberIds, type Wallet } from './suggestions.ts'

/** The oldest first, so that the wallets that a workspace began with stay in the list. */
const walletsTarget = '/api/v1/wallets?size=100&sort=createdAt,asc'
const shownWallets = 10
type WalletPage = { content: Wallet[]; page: { totalElements: number } }
const apiKey = elementById('api-key', HTMLInputElement)
const apiSecret = elementById('api-secret', HTMLInputElement)
const keyStatus = elementById('key-status', HTMLElement)
const keyWallets = elementById('key-wallets', HTMLUListElement)

prepareSecret(apiSecret)
if (!isSecureContext) keyStatus.replaceChildren(problem(insecurePage))

onSubmit(elementById('key', HTMLFormElement), keyStatus, async () => {
  keyWallets.replaceChildren()
  const answer = await exchange(credentials(), 'GET', walletsTarget)
  if (!answer.envelope?.success) return outcomeOf(answer)
  const wallets = answer.envelope.data as WalletPage
  showWallets(wallets)
  proposeWallets(wallets.content)
  return welcome(wallets)
})

for (const form of document.querySelectorAll<HTMLFormElement>('form.try')) {
  const outcome = form.querySelector<HTMLElement>('.outcome')!
  generateBizId(form)
  onSubmit(form, outcome, async () => {
    const signer = credentials()
    const { method, target, body } = readRequest(form)
    const answer = await exchange(signer, method, target, body)
    rememberIds(answer.envelope?.data)
    if (answer.envelope?.code === 'GA2012') keyStatus.replaceChildren(problem(wrongSecretSentence))
    if (answer.envelope?.success && method !== 'GET') {
      generateBizId(form)
      void reloadWallets(signer)
    }
    return outcomeOf(answer)
  })
}

proposeTimes(Date.now())
foldContents()

/** Runs `action` when a form is sent, once at a time, and shows what it returns or why it failed. */
function onSubmit(form: HTMLFormElement, output: HTMLElement, action: () => Promise<Node[]>): void {
  const button = form.querySelector<HTMLButtonElement>('button[type="submit"]')!
  form.addEventListener('submit', async event => {
    event.preventDefault()
    if (form.ariaBusy === 'true') return
    form.ariaBusy = 'true'
    const label = button.textContent
    button.textContent = 'Sending …'
    try {
      output.replaceChildren(...(await action()))
    } catch (error) {
      const place = error instanceof KeyMissing ? keyStatus : output
      place.replaceChildren(problem(sentenceOf(error)))
      if (error instanceof FormFault) error.control.focus()
    } finally {
      button.textContent = label
      form.ariaBusy = 'false'
    }
  })
}

/** Its sentence is shown at the key, which has the focus next, wherever the reader is. */
class KeyMissing extends FormFault {}

/** What the reader entered. Spaces around it come from copying. @throws KeyMissing */
function credentials() {
  const entered = { apiKey: apiKey.value.trim(), apiSecret: apiSecret.value.trim() }
  if (!entered.apiKey) throw new KeyMissing(apiKey, 'Enter your API key and secret.')
  if (!entered.apiSecret) throw new KeyMissing(apiSecret, 'Enter your API secret.')
  if (!isSecureContext) throw new Error(insecurePage)
  return entered
}

function sentenceOf(error: unknown): string {
  if (error instanceof TypeError) return 'The server did not answer. Check that the gateway runs, and send again.'
  return error instanceof Error ? error.message : String(error)
}

function welcome({ content, page: { totalElements } }: WalletPage): Node[] {
  const count = totalElements === 1 ? '1 wallet' : `${totalElements} wallets`
  const offered = totalElements > content.length ? `the first ${content.length}` : 'them'
  const next = document.querySelector('form.try[data-path="/api/v1/transfer/command/create"]')
  const link = next
    ? [
        element(
          'p',
          {},
          element('a', { href: `#${next.closest('article')!.id}` }, 'Create a transfer between two of them'),
        ),
      ]
    : []
  return [
    element(
      'p',
      { class: 'verdict good' },
      `The key works. Its workspace has ${count}, and the forms below offer ${offered}.`,
    ),
    ...(content.length > 1 ? link : []),
  ]
}

/** Shows the balances after a command. If they cannot be read, the former ones stay. */
async function reloadWallets(signer: Credentials): Promise<void> {
  const answer = await exchange(signer, 'GET', walletsTarget).catch(() => undefined)
  if (answer?.envelope?.success) showWallets(answer.envelope.data as WalletPage)
}

/** Not in the status of the key, which screen readers read when it changes. */
function showWallets({ content, page: { totalElements } }: WalletPage): void {
  offerWallets(content)
  const rows = content
    .slice(0, shownWallets)
    .map(({ name, balance, currency, walletId }) =>
      element('li', {}, `${name}: ${balance} ${currency} `, element('code', {}, walletId)),
    )
  const more = totalElements - rows.length
  keyWallets.replaceChildren(...rows, ...(more > 0 ? [element('li', {}, `… and ${more} more`)] : []))
}

/** The list of endpoints is folded where it would hide the page. */
function foldContents(): void {
  const contents = document.querySelector<HTMLDetailsElement>('.contents details')!
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
