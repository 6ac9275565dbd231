/** The bodies of one sender. */
type Sender = {
  name: string
  /** How many are not released. */
  bodies: number
  bytes: number
  /** Those of which a part has arrived, oldest first. */
  arriving: Set<BodyShare>
}

/** What one body takes of the memory. */
export type BodyShare = {
  readonly sender: Sender
  bytes: number
  isReleased: boolean
  /** Called once, if the body has to give way to others. */
  readonly onEvicted: () => void
}

/**
 * Memory for the bodies of requests, shared fairly by their senders. One sender gets at most half of it. When it is used up,
 * the body that began first gives way, of the sender whose bodies take most: a body that dawdles, not one that has just begun.
 */
export class BodyMemory {
  readonly #limitBytes: number
  readonly #senders = new Map<string, Sender>()
  #usedBytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** Begins a body, which takes nothing yet. */
  begin(senderName: string, onEvicted: () => void): BodyShare {
    const sender = this.#senders.get(senderName) ?? { name: senderName, bodies: 0, bytes: 0, arriving: new Set() }
    this.#senders.set(senderName, sender)
    sender.bodies++
    return { sender, bytes: 0, isReleased: false, onEvicted }
  }

  /** Sets how much an arriving body takes. Returns false if it has given way. */
  resize(share: BodyShare, bytes: number): boolean {
    if (share.isReleased) return false
    const { sender } = share
    sender.arriving.add(share)
    this.#add(share, bytes - share.bytes)
    while (!share.isReleased) {
      const isGreedy = sender.bytes > this.#limitBytes / 2
      if (!isGreedy && this.#usedBytes <= this.#limitBytes) return true
      const [oldest] = isGreedy ? sender.arriving : this.#largestSender(sender).arriving
      this.release(oldest!)
      oldest!.onEvicted()
    }
    return false
  }

  /** Records that a body has arrived completely. From now on it does not give way to others. */
  complete(share: BodyShare): void {
    share.sender.arriving.delete(share)
  }

  /** Frees what a body takes. */
  release(share: BodyShare): void {
    if (share.isReleased) return
    share.isReleased = true
    const { sender } = share
    this.#add(share, -share.bytes)
    sender.arriving.delete(share)
    if (--sender.bodies === 0) this.#senders.delete(sender.name)
  }

  #add(share: BodyShare, bytes: number): void {
    share.bytes += bytes
    share.sender.bytes += bytes
    this.#usedBytes += bytes
  }

  /** The sender whose bodies take most, of those with an arriving body. */
  #largestSender(first: Sender): Sender {
    let largest = first
    for (const sender of this.#senders.values())
      if (sender.arriving.size > 0 && sender.bytes > largest.bytes) largest = sender
    return largest
  }
}
