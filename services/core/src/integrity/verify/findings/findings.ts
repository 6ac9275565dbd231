import {
  type BrokenRule,
  type IdKind,
  idFromUuid,
  type LedgerRule,
  ledgerRules,
  listedViolations,
  type Uuid,
  uuidPattern,
  type Violation,
} from '@workspace-wallet/contract'

/** Collects violations. Of each rule it keeps the first ones and counts the others, so that memory is bounded and no rule hides another. */
export class Findings {
  readonly #rules = new Map<LedgerRule, { violations: number; listed: Violation[] }>()

  add(violation: Violation): void {
    const found = this.#of(violation.rule)
    found.violations++
    if (found.listed.length < listedViolations) found.listed.push(violation)
  }

  /** Counts violations that the caller has not kept. */
  addUnlisted(rule: LedgerRule, count: number): void {
    if (count > 0) this.#of(rule).violations += count
  }

  count(rule: LedgerRule): number {
    return this.#rules.get(rule)?.violations ?? 0
  }

  /** Appends a sentence to the messages of a rule. */
  explain(rule: LedgerRule, sentence: string): void {
    for (const violation of this.#rules.get(rule)?.listed ?? []) violation.message += `. ${sentence}`
  }

  get ok(): boolean {
    return this.#rules.size === 0
  }

  get brokenRules(): BrokenRule[] {
    return this.#inOrder().map(([rule, { violations }]) => ({ rule, violations }))
  }

  get violations(): Violation[] {
    return this.#inOrder().flatMap(([, { listed }]) => listed)
  }

  #of(rule: LedgerRule) {
    const found = this.#rules.get(rule) ?? { violations: 0, listed: [] }
    this.#rules.set(rule, found)
    return found
  }

  #inOrder() {
    return [...this.#rules].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))
  }
}

const order = Object.keys(ledgerRules)

/** The public ID of a stored UUID; a damaged value is returned unchanged. */
export function publicId(kind: IdKind, stored: string | null): string {
  return stored !== null && uuidPattern.test(stored) ? idFromUuid(kind, stored as Uuid) : `${stored}`
}
