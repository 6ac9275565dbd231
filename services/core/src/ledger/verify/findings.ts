import { type IdKind, idFromUuid, type LedgerRule, listedViolations, type Violation } from '@workspace-wallet/contract'

/** So that a rule that every row breaks does not hide the others. */
const listedPerRule = 20

/** Collects violations. Lists the first ones and counts the others, so that memory is bounded. */
export class Findings {
  readonly violations: Violation[] = []
  #total = 0
  readonly #perRule = new Map<LedgerRule, number>()

  add(violation: Violation): void {
    const { rule } = violation
    const ofRule = (this.#perRule.get(rule) ?? 0) + 1
    this.#total++
    this.#perRule.set(rule, ofRule)
    if (this.violations.length < listedViolations && ofRule <= listedPerRule) this.violations.push(violation)
  }

  /** Counts further violations of rules that already have one. */
  addUnlisted(count: number): void {
    this.#total += count
  }

  count(rule: LedgerRule): number {
    return this.#perRule.get(rule) ?? 0
  }

  /** Appends a sentence to the messages of a rule. */
  explain(rule: LedgerRule, sentence: string): void {
    for (const violation of this.violations) if (violation.rule === rule) violation.message += `. ${sentence}`
  }

  get summary(): { ok: boolean; violations: Violation[]; more: number; brokenRules: LedgerRule[] } {
    return {
      ok: this.#total === 0,
      violations: this.violations,
      more: this.#total - this.violations.length,
      brokenRules: [...this.#perRule.keys()].sort(),
    }
  }
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The public ID of a stored UUID; a damaged value is returned unchanged. */
export function publicId(kind: IdKind, stored: string | null): string {
  return stored !== null && uuidPattern.test(stored) ? idFromUuid(kind, stored) : `${stored}`
}
