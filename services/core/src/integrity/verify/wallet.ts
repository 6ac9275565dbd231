import type { KeyObject } from 'node:crypto'
import { currencyDecimals, Decimal, type LedgerRule, type TransferType } from '@workspace-wallet/contract'
import { bytes } from '../../database/tables/columns.ts'
import { rowFrom } from '../../database/tables/table.ts'
import { transferColumns } from '../../database/tables/transfer.ts'
import { walletColumns, walletMac } from '../../database/tables/wallet.ts'
import { chainFormat, emptyHead, entryMac, transferDigest } from '../../ledger/chain/chain.ts'
import type { Entry } from '../../ledger/chain/transfer.ts'
import { type Findings, publicId } from './findings/findings.ts'
import type { FlowText, WalletText } from './queries.ts'
import type { CheckpointHead } from './uploaded-checkpoint.ts'
import { dateOf, decimalOf, wholeOf } from './values.ts'

const zero = new Decimal(0)
/** Which flow of a transfer is on the EXTERNAL wallet. */
const externalSide: Record<TransferType, Entry['direction'] | null> = {
  TRANSFER: null,
  DEPOSIT: 'OUT',
  WITHDRAWAL: 'IN',
}
const macLength = 33

/**
 * Replays one wallet: its flows in order, then its row. Accepts any values: one that cannot be read is a violation.
 * After a violation the replay continues from the stored values, so that one damaged row does not make all later ones fail.
 */
/** The end of a wallet's chain: what a verification compares with the one before. */
export type ChainEnd = [id: string | null, sequence: number, mac: string, balance: string, orderCount: number]

export class WalletReplay {
  readonly #key: KeyObject
  readonly #findings: Findings
  /** Null when the flows name a wallet that does not exist. */
  readonly #wallet: WalletText | null
  readonly #workspaceId: string | null
  readonly #id: string | null
  readonly #checkpointHead: CheckpointHead | null
  readonly #decimals: number | null

  /** Since when the flows are replayed: the first one is not earlier. Null if they are replayed from the beginning. */
  readonly #since: { time: number } | null
  /** Where the last verification ended, if that is not the beginning of the chain. */
  #verified: ChainEnd | null = null

  /** How many flows were read, and how many there are with those that the last verification has read. */
  #read = 0
  #flows = 0
  #sum = zero
  #sequence = 0
  /** The last order_count as written, and how many flows of transfers between wallets there were. */
  #orderCount = 0
  #orders = 0
  #time = Number.NEGATIVE_INFINITY
  #balance = zero
  #mac: Buffer = emptyHead
  /** What the previous flow should have had, if it has something else: this flow may continue from that. */
  #expectedBalance: Decimal | null = null
  #expectedMac: Buffer | null = null
  /** The MAC at the sequence of the checkpoint, once the replay reaches it. */
  #macAtCheckpoint: Buffer | null = null

  constructor(
    key: KeyObject,
    findings: Findings,
    workspaceId: string | null,
    id: string | null,
    wallet: WalletText | null,
    checkpointHead: CheckpointHead | null,
    since: { time: number } | null,
  ) {
    this.#key = key
    this.#since = since
    this.#findings = findings
    this.#wallet = wallet
    this.#workspaceId = workspaceId
    this.#id = id
    this.#checkpointHead = checkpointHead
    this.#decimals = currencyDecimals.get(wallet?.currency ?? '') ?? null
    if (wallet && this.#decimals === null) this.#reportWallet('flow-currency', `its currency is ${wallet.currency}`)
    if (wallet && wallet.kind !== 'CUSTOMER' && wallet.kind !== 'EXTERNAL')
      this.#reportWallet('wallet-external', `its kind is ${wallet.kind}, expected CUSTOMER or EXTERNAL`)
  }

  flow(flow: FlowText): void {
    const report: Report = (rule, message) => this.#reportFlow(rule, flow, message)
    const sequence = wholeOf(flow.sequence)
    const isRepeated = sequence === this.#sequence
    if (this.#since && this.#read === 0) this.#beginBefore(flow, this.#since.time)
    const follows = sequence === this.#sequence + 1
    if (this.#read === 0 && !this.#wallet) report('flow-wallet', 'it belongs to a wallet that does not exist')
    if (!follows) report('flow-sequence', `its sequence is ${flow.sequence}, expected ${this.#sequence + 1}`)

    const amount = decimalOf(flow.amount)
    const change = flow.direction === 'OUT' ? amount.negated() : amount
    this.#read++
    this.#flows++
    this.#sum = this.#sum.plus(change)
    this.#checkAmount(flow, report)
    this.#checkOrderCount(flow, follows, report)
    if (this.#wallet) this.#checkWalletOf(flow, this.#wallet, report)
    // A second flow with the same sequence is not part of the chain.
    if (isRepeated) return
    this.#checkTime(flow, report)
    this.#checkBalance(flow, change, follows, report)
    this.#checkMac(flow, follows, report)
    if (!Number.isNaN(sequence)) this.#sequence = sequence
    if (sequence === this.#checkpointHead?.sequence) this.#macAtCheckpoint = this.#mac
  }

  /** The state before the first flow that is read. What the flow says of it is under its MAC; the digest of all wallets confirms it. */
  #beginBefore(
    { sequence, amount, direction, balanceAfter, type, flowOrderCount, previousMac }: FlowText,
    time: number,
  ) {
    const change = direction === 'OUT' ? decimalOf(amount).negated() : decimalOf(amount)
    this.#sequence = wholeOf(sequence) - 1
    this.#flows = this.#sequence
    this.#balance = decimalOf(balanceAfter).minus(change)
    this.#sum = this.#balance
    this.#orderCount = wholeOf(flowOrderCount) - (type === 'TRANSFER' ? 1 : 0)
    this.#orders = this.#orderCount
    this.#time = time
    this.#mac = previousMac === null ? emptyHead : bytes.parse(previousMac)
    this.#verified = this.#chainEnd()
  }

  /** Without new flows, the chain is where the last verification left it. The digest of all wallets confirms it. */
  #beginWith({ sequence, balance, orderCount, head }: WalletText): void {
    this.#sequence = wholeOf(sequence)
    this.#flows = this.#sequence
    this.#balance = decimalOf(balance)
    this.#sum = this.#balance
    this.#orderCount = wholeOf(orderCount)
    this.#orders = this.#orderCount
    this.#mac = bytes.parse(head)
    this.#verified = this.#chainEnd()
  }

  #chainEnd(): ChainEnd {
    return [this.#id, this.#sequence, this.#mac.toString('hex'), this.#balance.toFixed(), this.#orderCount]
  }

  /**
   * Checks the wallet's row after its last flow. Returns the sum of the flows, and the ends of the chain now and at the end of the last
   * verification; null for a wallet that had no flows.
   */
  end(): { sum: Decimal; now: ChainEnd | null; verified: ChainEnd | null } {
    if (this.#since && this.#read === 0 && this.#wallet) this.#beginWith(this.#wallet)
    if (this.#wallet) this.#checkWallet(this.#wallet)
    if (this.#checkpointHead) this.#checkAgainstCheckpoint(this.#checkpointHead)
    const hasFlows = (end: ChainEnd | null) => (end && end[1] !== 0 ? end : null)
    return { sum: this.#sum, now: hasFlows(this.#chainEnd()), verified: hasFlows(this.#verified) }
  }

  #checkAmount({ amount }: FlowText, report: Report): void {
    if (amount === null || !/^\d+(\.\d+)?$/.test(amount) || !/[1-9]/.test(amount)) {
      report('flow-amount', `its amount is ${amount}, expected more than zero`)
      return
    }
    const point = amount.indexOf('.')
    const decimals = point < 0 ? 0 : amount.length - point - 1
    if (this.#decimals !== null && decimals > this.#decimals)
      report('flow-amount', `its amount ${amount} has more than ${this.#decimals} decimals`)
  }

  #checkOrderCount({ flowOrderCount: orderCount, type }: FlowText, follows: boolean, report: Report): void {
    const added = type === 'TRANSFER' ? 1 : 0
    const expected = this.#orderCount + added
    this.#orders += added
    const count = wholeOf(orderCount)
    // After a gap in the sequence, which is reported, no count is expected.
    if (follows && count !== expected && count !== this.#orders)
      report('flow-order-count', `its order_count is ${orderCount}, expected ${expected}`)
    this.#orderCount = Number.isNaN(count) ? expected : count
  }

  #checkWalletOf({ currency, type, direction }: FlowText, wallet: WalletText, report: Report): void {
    if (currency !== wallet.currency)
      report('flow-currency', `its transfer is in ${currency}, its wallet in ${wallet.currency}`)
    const external = externalSide[type as TransferType]
    if (external === undefined) report('transfer-type', `its transfer has the unknown type ${type}`)
    else if ((wallet.kind === 'EXTERNAL') !== (direction === external))
      report('transfer-type', `it is the ${direction} flow of a ${type} on a wallet of kind ${wallet.kind}`)
  }

  #checkTime({ time: text }: FlowText, report: Report): void {
    const time = timeOf(text)
    // Comparisons with an unreadable time are false.
    if (!(time >= this.#time)) report('flow-time', `its time is ${text}, earlier than the flow before it`)
    if (!Number.isNaN(time)) this.#time = time
  }

  #checkBalance({ balanceAfter }: FlowText, change: Decimal, follows: boolean, report: Report): void {
    const stored = decimalOf(balanceAfter)
    const expected = this.#balance.plus(change)
    const isExpected =
      !follows || stored.equals(expected) || (this.#expectedBalance?.plus(change).equals(stored) ?? false)
    if (!isExpected) report('flow-balance', `its balance_after is ${balanceAfter}, expected ${this.#money(expected)}`)
    if (this.#wallet?.kind === 'CUSTOMER' && !stored.greaterThanOrEqualTo(zero))
      report('flow-floor', `its balance_after is ${balanceAfter}`)
    this.#balance = stored
    this.#expectedBalance = isExpected ? null : expected
  }

  #checkMac(flow: FlowText, follows: boolean, report: Report): void {
    const stored = bytes.parse(flow.mac)
    const before = this.#mac
    const expectedBefore = this.#expectedMac
    this.#mac = stored
    this.#expectedMac = null
    const isKnown = stored[0] === chainFormat && stored.length === macLength
    if (!isKnown)
      report('flow-format', `its MAC begins with version ${stored[0] ?? 'none'} and has ${stored.length} bytes`)
    // The gap is reported already.
    if (!follows) return
    const entry = sideOf(flow)
    const digest = transferDigest(rowFrom(transferColumns, flow))
    const expected = entryMac(this.#key, entry, digest, before)
    if (
      expected.equals(stored) ||
      (expectedBefore && entryMac(this.#key, entry, digest, expectedBefore).equals(stored))
    )
      return
    this.#expectedMac = expected
    if (isKnown) report('flow-chain', 'its MAC does not match its content, its transfer and the flow before it')
  }

  #checkWallet(wallet: WalletText): void {
    const report: Report = (rule, message) => this.#reportWallet(rule, message)
    if (wholeOf(wallet.sequence) !== this.#flows)
      report('wallet-sequence', `its sequence is ${wallet.sequence}, but it has ${this.#flows} flows`)
    if (wholeOf(wallet.orderCount) !== this.#orders)
      report('wallet-order-count', `its order_count is ${wallet.orderCount}, but it has ${this.#orders} transfers`)
    const balance = decimalOf(wallet.balance)
    if (!balance.equals(this.#sum))
      report('wallet-balance', `its balance is ${wallet.balance}, but its flows sum to ${this.#money(this.#sum)}`)
    else if (!balance.equals(this.#balance))
      report(
        'wallet-balance',
        `its balance is ${wallet.balance}, but its last balance_after is ${this.#money(this.#balance)}`,
      )
    if (wallet.head === null || !bytes.parse(wallet.head).equals(this.#mac))
      report('wallet-head', 'its head is not the MAC of its last flow')
    if (!walletMac(this.#key, rowFrom(walletColumns, wallet)).equals(bytes.parse(wallet.mac)))
      report('wallet-mac', 'its MAC does not match its row')
    const { lastPostedAt } = wallet
    // A missing ledger is reported once, for the workspace.
    if (lastPostedAt !== null && !(this.#time <= timeOf(lastPostedAt)))
      report('ledger-time', `its latest flow is later than its ledger's last_posted_at, ${lastPostedAt}`)
  }

  #checkAgainstCheckpoint({ sequence, head, revision }: CheckpointHead): void {
    const report: Report = (rule, message) => this.#findings.add({ rule, message, ids: { ...this.#ids(), sequence } })
    if (!this.#wallet) {
      report('checkpoint-wallet', 'it is in the checkpoint but no longer exists')
    } else if (sequence === 0 || this.#macAtCheckpoint?.equals(head)) {
      if (!(wholeOf(this.#wallet.revision) >= revision))
        report(
          'checkpoint-revision',
          `its row is at revision ${this.#wallet.revision}, and at ${revision} in the checkpoint`,
        )
    } else if (this.#macAtCheckpoint) {
      report('checkpoint-head', `its flow ${sequence} has another MAC than in the checkpoint`)
    } else if (wholeOf(this.#wallet.sequence) >= sequence) {
      report('checkpoint-sequence', `its flow ${sequence} is in the checkpoint but no longer exists`)
    } else {
      report('checkpoint-sequence', `the checkpoint names sequence ${sequence}, and it is at ${this.#wallet.sequence}`)
    }
  }

  #money(value: Decimal): string {
    return value.toFixed(Math.max(this.#decimals ?? 0, value.isFinite() ? value.decimalPlaces() : 0))
  }

  #ids(): { workspaceId: string; walletId: string } {
    return { workspaceId: publicId('workspace', this.#workspaceId), walletId: publicId('wallet', this.#id) }
  }

  #reportWallet(rule: LedgerRule, message: string): void {
    this.#findings.add({ rule, message, ids: this.#ids() })
  }

  #reportFlow(rule: LedgerRule, flow: FlowText, message: string): void {
    const whole = wholeOf(flow.sequence)
    const sequence = Number.isNaN(whole) ? `${flow.sequence}` : whole
    const transferId = publicId('transfer', flow.transferId)
    this.#findings.add({ rule, message, ids: { ...this.#ids(), sequence, transferId } })
  }
}

type Report = (rule: LedgerRule, message: string) => void

function sideOf({ direction, balanceAfter, flowOrderCount }: FlowText) {
  return { direction, balanceAfter: balanceAfter!, orderCount: Number(flowOrderCount) }
}

function timeOf(text: string | null): number {
  return dateOf(text).getTime()
}
