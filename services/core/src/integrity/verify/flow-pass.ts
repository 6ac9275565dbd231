import type { Decimal, Violation } from '@workspace-wallet/contract'
import { RunningDigest } from './baseline.ts'
import { publicId } from './findings/findings.ts'
import { Lookahead, sortKey } from './lookahead.ts'
import { type FlowText, flowsInOrder, type WalletText, walletsInOrder } from './queries.ts'
import type { Scope } from './scope.ts'
import type { CheckpointHead, UploadedCheckpointReader } from './uploaded-checkpoint.ts'
import { dateOf } from './values.ts'
import { WalletReplay } from './wallet.ts'

/** Merges wallets, flows and the heads of a checkpoint, all in the order of their keys. */
export class FlowPass {
  flows = 0
  readonly #scope: Scope
  readonly #wallets: Lookahead<WalletText>
  readonly #checkpointHeads: Lookahead<CheckpointHead>
  #replay: WalletReplay | null = null
  #workspace: string | null = null
  #currency: string | null = null
  #sums = new Map<string | null, Decimal>()
  /** The ends of the chains of the workspace, now and where the last verification ended. */
  #ends = new RunningDigest()
  #verifiedEnds = new RunningDigest()

  constructor(scope: Scope, checkpoint: UploadedCheckpointReader | null) {
    this.#scope = scope
    this.#wallets = new Lookahead(walletsInOrder(scope.snapshot, scope.workspaceId))
    this.#checkpointHeads = new Lookahead(checkpoint ? checkpoint.heads() : noHeads())
  }

  /** Yields the number of flows read so far, after each batch. */
  async *run(): AsyncGenerator<number> {
    let key: string | null = null
    for await (const flows of flowsInOrder(this.#scope)) {
      for (const flow of flows) {
        const next = sortKey(flow.workspaceId, flow.walletId)
        if (next !== key) {
          key = next
          await this.#goTo(flow, key)
        }
        this.#replay!.flow(flow)
      }
      this.flows += flows.length
      yield this.flows
    }
    await this.#passWallets(null)
    await this.#passCheckpointHead(null)
    this.#endWorkspace()
    this.#scope.wallets.end()
  }

  /** Ends the current wallet and begins the one that this flow names. */
  async #goTo({ workspaceId, walletId }: FlowText, key: string): Promise<void> {
    await this.#passWallets(key)
    const wallet = await this.#wallets.peek()
    const isFound = wallet !== undefined && sortKey(wallet.workspaceId, wallet.id) === key
    if (isFound) this.#wallets.take()
    await this.#begin(workspaceId, walletId, isFound ? wallet : null)
  }

  /** Ends the current wallet, and checks the wallets without flows before this key, or up to the end. */
  async #passWallets(key: string | null): Promise<void> {
    this.#endWallet()
    for (;;) {
      const wallet = await this.#wallets.peek()
      if (!wallet || (key !== null && sortKey(wallet.workspaceId, wallet.id) >= key)) return
      await this.#begin(wallet.workspaceId, wallet.id, wallet)
      this.#endWallet()
      this.#wallets.take()
    }
  }

  /** The head in the checkpoint with this key. Earlier heads are of wallets that no longer have a row or a flow. */
  async #passCheckpointHead(key: string | null): Promise<CheckpointHead | null> {
    for (;;) {
      const head = await this.#checkpointHeads.peek()
      const checkpointKey = head && sortKey(head.workspaceId, head.walletId)
      if (checkpointKey === undefined || (key !== null && checkpointKey > key)) return null
      this.#checkpointHeads.take()
      if (checkpointKey === key) return head!
      this.#scope.findings.add(missingWallet(head!))
    }
  }

  async #begin(workspaceId: string | null, id: string | null, wallet: WalletText | null): Promise<void> {
    const checkpointHead = await this.#passCheckpointHead(sortKey(workspaceId, id))
    if (workspaceId !== this.#workspace) this.#endWorkspace()
    this.#workspace = workspaceId
    this.#currency = wallet?.currency ?? null
    const { chainKey, findings, baseline } = this.#scope
    const verified = baseline.get(`${workspaceId}`)
    const since = verified ? { time: dateOf(verified.postedAt).getTime() } : null
    this.#replay = new WalletReplay(chainKey, findings, workspaceId, id, wallet, checkpointHead, since)
  }

  #endWallet(): void {
    if (!this.#replay) return
    const { sum, now, verified } = this.#replay.end()
    this.#replay = null
    if (now) this.#ends.add(now)
    if (verified) this.#verifiedEnds.add(verified)
    this.#sums.set(this.#currency, sum.plus(this.#sums.get(this.#currency) ?? 0))
  }

  #endWorkspace(): void {
    if (this.#workspace !== null) {
      this.#scope.wallets.set(this.#workspace, this.#ends.now)
      this.#scope.wallets.compare(this.#workspace, this.#verifiedEnds.now)
    }
    this.#ends = new RunningDigest()
    this.#verifiedEnds = new RunningDigest()
    const workspaceId = publicId('workspace', this.#workspace)
    for (const [currency, sum] of this.#sums)
      if (!sum.isZero()) {
        const message = `its flows in ${currency ?? 'no known currency'} sum to ${sum}`
        const ids = currency === null ? { workspaceId } : { workspaceId, currency }
        this.#scope.findings.add({ rule: 'workspace-sum', message, ids })
      }
    this.#sums.clear()
  }
}

async function* noHeads(): AsyncGenerator<CheckpointHead[]> {}

function missingWallet({ workspaceId, walletId, sequence }: CheckpointHead): Violation {
  const ids = { workspaceId: publicId('workspace', workspaceId), walletId: publicId('wallet', walletId), sequence }
  return { rule: 'checkpoint-wallet', message: 'it is in the checkpoint but no longer exists', ids }
}
