import { element, elementById } from './elements.ts'

/** The IDs that the forms offer: the wallets of the key, and the IDs in earlier responses. */

export type Wallet = { walletId: string; name: string; currency: string; balance: string; status: string }

const lists = { walletId: 'wallets', transferId: 'transfers', holdId: 'holds', webhookId: 'webhooks' } as const

/** Offers wallets, with their names and balances. */
export function offerWallets(wallets: readonly Wallet[]): void {
  elementById('wallets', HTMLDataListElement).replaceChildren(
    ...wallets.map(({ walletId, name, currency, balance }) =>
      element('option', { value: walletId, label: `${name}: ${balance} ${currency}` }),
    ),
  )
}

/** Puts wallets where a form needs some. */
export function proposeWallets(wallets: readonly Wallet[]): void {
  const [source, target] = pairOf(wallets)
  for (const input of document.querySelectorAll<HTMLInputElement>('form.try input[list="wallets"][required]')) {
    const isTarget = input.name === 'targetWalletId'
    input.value = (isTarget ? target : source)?.walletId ?? ''
  }
  for (const input of document.querySelectorAll<HTMLInputElement>('form.try input[name="currency"][required]'))
    if (source) input.value = source.currency
  if (source && target)
    for (const area of document.querySelectorAll<HTMLTextAreaElement>('form.try textarea[name="transfers"]'))
      area.value = JSON.stringify(batchOf(source, target), null, 2)
}

/** Two small transfers, there and back. */
function batchOf(source: Wallet, target: Wallet): object[] {
  const amount = '1.00'
  const { currency } = source
  return [
    [source, target],
    [target, source],
  ].map(([from, to]) => ({
    sourceWalletId: from!.walletId,
    targetWalletId: to!.walletId,
    amount,
    currency,
    bizId: newBizId(),
  }))
}

/** Proposes a new bizId, so that a form that is sent again after a success makes something new. */
export function generateBizId(form: HTMLFormElement): void {
  const input = form.querySelector<HTMLInputElement>('input[name="bizId"][data-in="body"]')
  if (input) input.value = newBizId()
  const area = form.querySelector<HTMLTextAreaElement>('textarea[name="transfers"]')
  if (area) area.value = area.value.replaceAll(/("bizId": *)"[^"]*"/g, (_, name) => `${name}"${newBizId()}"`)
}

/** 64 random bits. */
function newBizId(): string {
  return `docs-${[...crypto.getRandomValues(new Uint8Array(8))].map(byte => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Two wallets that money can be moved between: of one currency, from the one that holds most. */
function pairOf(wallets: readonly Wallet[]): [Wallet | undefined, Wallet | undefined] {
  const active = wallets.filter(({ status }) => status === 'ACTIVE')
  const byBalance = active.toSorted((a, b) => Number(b.balance) - Number(a.balance))
  for (const source of byBalance) {
    const target = active.find(each => each !== source && each.currency === source.currency)
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
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    if (typeof inner === 'string' && name in lists) offer(lists[name as keyof typeof lists], inner)
    else rememberIds(inner)
  }
}

function offer(list: string, id: string): void {
  const options = elementById(list, HTMLDataListElement)
  if (![...options.options].some(option => option.value === id)) options.prepend(element('option', { value: id }))
}
