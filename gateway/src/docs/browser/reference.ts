import { element, elementById } from './elements.ts'
import { type Exchange, exchange } from './exchange.ts'
import { outcomeOf, problem } from './outcome.ts'
import { FormFault, readRequest } from './request-form.ts'
import { insecurePage, prepareSecret } from './secret-input.ts'
import { offerWallets, rememberIds, type Wallet } from './suggestions.ts'

const apiKey = elementById('api-key', HTMLInputElement)
const apiSecret = elementById('api-secret', HTMLInputElement)
const keyStatus = elementById('key-status', HTMLElement)

prepareSecret(apiSecret)
if (!isSecureContext) keyStatus.replaceChildren(problem(insecurePage))

onSubmit(elementById('key', HTMLFormElement), keyStatus, async () => {
  const answer = await exchange(credentials(), 'GET', '/api/v1/wallets?size=100')
  if (!answer.envelope?.success) return outcomeOf(answer)
  const { content } = answer.envelope.data as { content: Wallet[] }
  offerWallets(content)
  return welcome(content)
})

for (const form of document.querySelectorAll<HTMLFormElement>('form.try')) {
  const outcome = form.querySelector<HTMLElement>('.outcome')!
  onSubmit(form, outcome, async () => {
    const signer = credentials()
    const { method, target, body } = readRequest(form)
    const answer = await exchange(signer, method, target, body)
    rememberIds(answer.envelope?.data)
    return [...outcomeOf(answer), ...advice(answer)]
  })
}

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
      output.replaceChildren(problem(sentenceOf(error)))
      if (error instanceof FormFault) error.control.focus()
    } finally {
      button.textContent = label
      form.ariaBusy = 'false'
    }
  })
}

/** What the reader entered. Spaces around it come from copying. @throws FormFault if something is missing */
function credentials() {
  const entered = { apiKey: apiKey.value.trim(), apiSecret: apiSecret.value.trim() }
  if (!entered.apiKey) throw new FormFault(apiKey, 'Enter your API key at the top of the page first.')
  if (!entered.apiSecret) throw new FormFault(apiSecret, 'Enter your API secret at the top of the page first.')
  if (!isSecureContext) throw new Error(insecurePage)
  return entered
}

function sentenceOf(error: unknown): string {
  if (error instanceof TypeError) return 'The server did not answer. Check that the gateway runs, and send again.'
  return error instanceof Error ? error.message : String(error)
}

function welcome(wallets: readonly Wallet[]): Node[] {
  const count = wallets.length === 1 ? '1 wallet' : `${wallets.length} wallets`
  const rows = wallets
    .slice(0, 5)
    .map(({ name, balance, currency, walletId }) =>
      element('li', {}, `${name}: ${balance} ${currency} `, element('code', {}, walletId)),
    )
  const next = document.querySelector('form.try[data-path="/api/v1/transfer/command/create"]')
  const link = next
    ? [element('p', {}, element('a', { href: `#${next.id}` }, 'Create a transfer between two of them'))]
    : []
  return [
    element(
      'p',
      { class: 'verdict good' },
      `The key works. Its workspace has ${count}, and the forms below offer them.`,
    ),
    element('ul', {}, ...rows),
    ...(wallets.length > 1 ? link : []),
  ]
}

/** Where a failure has a tool of its own. */
function advice({ envelope }: Exchange): Node[] {
  if (envelope?.code !== 'GA2012') return []
  const debuggerLink = element('a', { href: '/docs/signature' }, 'signature debugger')
  return [
    element(
      'p',
      {},
      'This page signs correctly, so check that the secret belongs to the key. The ',
      debuggerLink,
      ' finds mistakes of your own client.',
    ),
  ]
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
