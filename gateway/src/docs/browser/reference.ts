import type { Credentials } from '@workspace-wallet/client/signing'
import { prepareArrays } from './array-fields.ts'
import { prepareCopying } from './copy.ts'
import { element, elementById, idButton } from './elements.ts'
import { exchange } from './exchange.ts'
import { prepareNavigation } from './navigation.ts'
import { outcomeOf, problem, wrongSecretSentence } from './outcome.ts'
import { FormFault, readRequest } from './request-form.ts'
import { prepareSamples, updateSamples } from './sample-view.ts'
import { prepareSearch } from './search.ts'
import { insecurePage, prepareSecret } from './secret-input.ts'
import {
  generateBizIds,
  offeredWallets,
  offerWallets,
  prepareSuggestions,
  proposeTimes,
  proposeWallets,
  rememberIds,
  updateWallets,
  walletIdsIn,
} from './suggestions.ts'
import { readEach, readWallets } from './wallets.ts'

const shownWallets = 10
/** A batch can name 200 wallets. */
const mostReloaded = 20
const apiKey = elementById('api-key', HTMLInputElement)
const apiSecret = elementById('api-secret', HTMLInputElement)
const keyStatus = elementById('key-status', HTMLElement)
const keyWallets = elementById('key-wallets', HTMLUListElement)
/** How many wallets the workspace has. */
let totalWallets = 0

prepareSecret(apiSecret)
if (!isSecureContext) keyStatus.replaceChildren(problem(insecurePage))

onSubmit(elementById('key', HTMLFormElement), keyStatus, async () => {
  keyWallets.replaceChildren()
  const found = await readWallets(credentials())
  if ('failure' in found) return outcomeOf(found.failure)
  totalWallets = found.total
  offerWallets(found.wallets)
  showWallets()
  for (const form of document.querySelectorAll('form.try')) proposeWallets(form)
  updateSamples()
  return welcome()
})

for (const form of document.querySelectorAll<HTMLFormElement>('form.try')) {
  const outcome = form.querySelector<HTMLElement>('.outcome')!
  prepareSuggestions(form)
  prepareArrays(form, (item, place) => {
    prepareSuggestions(item)
    generateBizIds(item)
    // Every other item goes back, so that a batch can be sent as it is.
    proposeWallets(item, place % 2 === 1)
  })
  generateBizIds(form)
  onSubmit(form, outcome, async () => {
    const signer = credentials()
    const { method, target, body } = readRequest(form)
    const answer = await exchange(signer, method, target, body)
    rememberIds(answer.envelope?.data)
    if (answer.envelope?.code === 'GA2012') keyStatus.replaceChildren(problem(wrongSecretSentence))
    if (answer.envelope?.success && method !== 'GET') {
      generateBizIds(form)
      updateSamples()
      void reloadWallets(signer, walletIdsIn(answer.envelope.data))
    }
    return outcomeOf(answer)
  })
}

proposeTimes(Date.now())
prepareCopying()
prepareSamples()
prepareSearch(url => (leaves(url) ? void window.open(url, '_blank', 'noopener') : location.assign(url)))
prepareNavigation()
document.addEventListener('click', event => {
  const link = (event.target as Element).closest('a')
  if (link && leaves(link.href)) link.target = '_blank'
})

/** Whether going there would lose the secret that the reader entered. Such pages open beside this one. */
function leaves(url: string): boolean {
  return apiSecret.value !== '' && new URL(url, location.href).pathname !== location.pathname
}

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

function welcome(): Node[] {
  const wallets = offeredWallets()
  const count = totalWallets === 1 ? '1 wallet' : `${totalWallets} wallets`
  const offered = totalWallets > wallets.length ? `the first ${wallets.length}` : 'them'
  const sentence = `The key works. Its workspace has ${count}, and the forms below offer ${offered}.`
  const link = element('a', { href: '#createTransfer' }, 'Create a transfer between two of them')
  return [element('p', { class: 'verdict good' }, sentence), ...(wallets.length > 1 ? [element('p', {}, link)] : [])]
}

/** Shows the balances after a command. If they cannot be read, the former ones stay. */
async function reloadWallets(signer: Credentials, walletIds: string[]): Promise<void> {
  const before = offeredWallets().length
  updateWallets(await readEach(signer, walletIds.slice(0, mostReloaded)))
  totalWallets += offeredWallets().length - before
  showWallets()
}

/** Not in the status of the key, which screen readers read when it changes. */
function showWallets(): void {
  const rows = offeredWallets()
    .slice(0, shownWallets)
    .map(({ name, balance, currency, walletId }) =>
      element('li', {}, `${name}: ${balance} ${currency} `, idButton(walletId)),
    )
  const more = totalWallets - rows.length
  keyWallets.replaceChildren(...rows, ...(more > 0 ? [element('li', {}, `… and ${more} more`)] : []))
}
