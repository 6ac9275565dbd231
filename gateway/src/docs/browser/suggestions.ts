import { makeCombobox, type Option } from './combobox.ts'
import { element, elementById } from './elements.ts'

/** The values that the forms offer: the wallets of the key, the IDs in earlier responses, and the currencies. */

export type Wallet = { walletId: string; name: string; currency: string; balance: string; status: string }

const fieldLists = { transferId: 'transfers', holdId: 'holds', webhookId: 'webhooks' } as const
type List = (typeof fieldLists)[keyof typeof fieldLists]

const ids: Record<List, string[]> = { transfers: [], holds: [], webhooks: [] }
const wallets = new Map<string, Wallet>()
const currencies = [...elementById('currencies', HTMLDataListElement).options].map(({ value }) => value)

/** The wallets that are offered, in order. */
export function offeredWallets(): Wallet[] {
  return [...wallets.values()]
}

/** Offers only these wallets: those of another key are forgotten. */
export function offerWallets(found: readonly Wallet[]): void {
  wallets.clear()
  updateWallets(found)
}

/** Shows current balances, and offers wallets that are new. */
export function updateWallets(found: readonly Wallet[]): void {
  for (const wallet of found) wallets.set(wallet.walletId, wallet)
  for (const input of document.querySelectorAll<HTMLInputElement>('form.try input[data-suggestions="wallets"]'))
    describeWallet(input)
}

/** Makes the inputs of a part of the page offer what they can have. */
export function prepareSuggestions(root: ParentNode): void {
  for (const input of root.querySelectorAll<HTMLInputElement>('input[data-suggestions]')) {
    const optionsFor = offers[input.dataset.suggestions!]!
    makeCombobox(input, {
      optionsFor,
      choose({ value }) {
        input.value = value
        input.dispatchEvent(new Event('input', { bubbles: true }))
      },
    })
    if (input.dataset.suggestions === 'wallets') input.addEventListener('input', () => describeWallet(input))
  }
}

const offers: Record<string, (text: string) => Option[]> = {
  wallets: text =>
    offeredWallets()
      .filter(wallet => hasText(text, wallet.walletId, wallet.name, wallet.currency))
      .map(walletOption),
  currencies: text => plainOptions(currencies, text),
  transfers: text => plainOptions(ids.transfers, text),
  holds: text => plainOptions(ids.holds, text),
  webhooks: text => plainOptions(ids.webhooks, text),
}

const plainOptions = (values: readonly string[], text: string): Option[] =>
  values.filter(value => hasText(text, value)).map(value => ({ value, content: [value] }))

function walletOption({ walletId, name, currency, balance, status }: Wallet): Option {
  const state = status === 'ACTIVE' ? '' : `, ${status.toLowerCase()}`
  return {
    value: walletId,
    content: [
      element('span', {}, name),
      element('span', { class: 'amount' }, `${balance} ${currency}${state}`),
      element('code', {}, walletId),
    ],
  }
}

function hasText(text: string, ...values: string[]): boolean {
  const wanted = text.trim().toLowerCase()
  return values.some(value => value.toLowerCase().includes(wanted))
}

/** Says which wallet was chosen, because an ID does not. */
function describeWallet(input: HTMLInputElement): void {
  const hint = document.getElementById(input.getAttribute('aria-describedby') ?? '')
  if (!hint) return
  hint.dataset.without ??= hint.textContent
  const wallet = wallets.get(input.value)
  hint.textContent = wallet ? `${wallet.name}: ${wallet.balance} ${wallet.currency}` : hint.dataset.without
}

/** Puts wallets where a part of the page needs some. @param isReturn the other way round */
export function proposeWallets(root: ParentNode, isReturn = false): void {
  const [source, target] = pairOf(offeredWallets())
  const [from, to] = isReturn ? [target, source] : [source, target]
  for (const input of root.querySelectorAll<HTMLInputElement>('input[data-suggestions="wallets"][required]')) {
    input.value = (input.name === 'targetWalletId' ? to : from)?.walletId ?? ''
    describeWallet(input)
  }
  for (const input of root.querySelectorAll<HTMLInputElement>('input[name="currency"][required]'))
    if (source) input.value = source.currency
}

/** Proposes new bizIds, so that a form that is sent again after a success makes something new. */
export function generateBizIds(root: ParentNode): void {
  const inputs = 'input[name="bizId"]:is([data-in="body"], [data-field])'
  for (const input of root.querySelectorAll<HTMLInputElement>(inputs)) input.value = newBizId()
}

/** 64 random bits. */
function newBizId(): string {
  return `docs-${[...crypto.getRandomValues(new Uint8Array(8))].map(byte => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Two wallets that money can be moved between: of one currency, from the one that holds most. */
function pairOf(all: readonly Wallet[]): [Wallet | undefined, Wallet | undefined] {
  const active = all.filter(({ status }) => status === 'ACTIVE')
  const byBalance = active.toSorted((a, b) => Number(b.balance) - Number(a.balance))
  const inCurrency = Map.groupBy(active, ({ currency }) => currency)
  for (const source of byBalance) {
    const target = inCurrency.get(source.currency)!.find(each => each !== source)
    if (target) return [source, target]
  }
  return [byBalance[0], undefined]
}

const dayMs = 86_400_000
/** A balance or a statement must end at least 30 seconds ago. */
const pastMs = 60_000

/** Puts the last day into the forms of balances at a time and of statements: the times of the examples are long ago. */
export function proposeTimes(now: number): void {
  const times = { from: now - dayMs, to: now - pastMs, at: now - pastMs }
  for (const [name, time] of Object.entries(times))
    for (const input of document.querySelectorAll<HTMLInputElement>(`form.try input[name="${name}"][data-in="path"]`))
      input.value = new Date(time).toISOString()
}

/** Offers the IDs in a response. The latest comes first. */
export function rememberIds(value: unknown): void {
  visitStrings(value, (name, text) => {
    if (!(name in fieldLists)) return
    const list = ids[fieldLists[name as keyof typeof fieldLists]]
    if (!list.includes(text)) list.unshift(text)
  })
}

/** The wallets that a response names. */
export function walletIdsIn(value: unknown): string[] {
  const found = new Set<string>()
  visitStrings(value, (name, text) => /walletId$/i.test(name) && found.add(text))
  return [...found]
}

function visitStrings(value: unknown, visit: (name: string, text: string) => void): void {
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    if (typeof inner === 'string') visit(name, inner)
    else visitStrings(inner, visit)
  }
}
