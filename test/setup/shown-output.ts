import { expect } from 'vitest'

/** What differs from run to run. Of one kind, values that a page shows as different are different, unless they are times. */
const kinds = [
  { kind: 'secret', pattern: 'whsec_[A-Za-z0-9+/]{43}=', isUnique: true },
  { kind: 'ID', pattern: '\\b[a-z]{2,3}_[0-9a-hjkmnp-tv-z]{26}\\b', isUnique: true },
  { kind: 'UUID', pattern: '\\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\\b', isUnique: true },
  { kind: 'time', pattern: '\\b\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z\\b', isUnique: false },
  { kind: 'milliseconds', pattern: '\\b1[78]\\d{11}\\b', isUnique: false },
  { kind: 'seconds', pattern: '\\b1[78]\\d{8}\\b', isUnique: false },
] as const
/** Balances, positions, counts and HTTP statuses; no part of a name, such as the 42 of invoice-42. */
const number = { kind: 'number', pattern: '(?<![\\w.:-])\\d+(?:\\.\\d+)?(?![\\w-]|\\.\\d)', isUnique: false } as const

type Kind = (typeof kinds)[number] | typeof number

/**
 * Compares outputs with those that a page shows, from its top to its end. Only IDs, secrets, UUIDs and times differ from run
 * to run, and the same one on the page is the same one in the run. A line of `…` stands for one or more lines.
 */
export class ShownOutputs {
  /** By the value that the page shows. */
  readonly #values = new Map<string, { kind: Kind; value: string }>()
  readonly #kinds: readonly Kind[]
  readonly #isNewDemo: boolean

  /** @param isNewDemo without it, the numbers differ too, because other pages have moved money before */
  constructor({ isNewDemo = true } = {}) {
    this.#isNewDemo = isNewDemo
    this.#kinds = isNewDemo ? kinds : [...kinds, number]
  }

  /** @param step what has printed the output, for the error */
  expectSame(output: string, shown: string, step: string): void {
    const { pattern, groups } = this.#patternOf(shown)
    const match = pattern.exec(output)
    if (!match) expect(output, `${step}\nprints something else`).toBe(this.#withValues(shown))
    for (const [at, { text, kind }] of groups.entries()) this.#learn(text, kind, match!.groups![`g${at}`]!, step)
  }

  #patternOf(shown: string): { pattern: RegExp; groups: { text: string; kind: Kind }[] } {
    const groups: { text: string; kind: Kind }[] = []
    const patternOfLine = (line: string) => {
      if (line.trim() === '…') return '(?:.*\\n)+?'
      return `${this.#split(line)
        .map(({ text, kind }) => {
          if (!kind) return this.#isNewDemo ? literal(text) : literal(text).replaceAll(/ {2,}/g, ' +')
          if (kind === number) return number.pattern
          const known = this.#values.get(text)
          if (known) return literal(known.value)
          const at = groups.findIndex(group => group.text === text)
          if (at >= 0) return `\\k<g${at}>`
          const [prefix = ''] = /^[a-z]+_/.exec(text) ?? []
          return `(?<g${groups.push({ text, kind }) - 1}>(?=${prefix})${kind.pattern})`
        })
        .join('')}\\n`
    }
    const lines = shown.split('\n').slice(0, -1)
    return { pattern: new RegExp(`^${lines.map(patternOfLine).join('')}$`), groups }
  }

  /** The pieces of a line: what differs from run to run, with its kind, and what is between. */
  #split(line: string): { text: string; kind?: Kind }[] {
    const any = new RegExp(this.#kinds.map(({ pattern }) => `(${pattern})`).join('|'), 'g')
    const pieces: { text: string; kind?: Kind }[] = []
    let end = 0
    for (const match of line.matchAll(any)) {
      const kind = this.#kinds[match.slice(1).findIndex(group => group !== undefined)]!
      pieces.push({ text: line.slice(end, match.index) }, { text: match[0], kind })
      end = match.index + match[0].length
    }
    return [...pieces, { text: line.slice(end) }]
  }

  #learn(text: string, kind: Kind, value: string, step: string): void {
    if (kind.isUnique)
      for (const [other, known] of this.#values)
        expect(known.value, `${step}\nprints the same ${kind.kind} for ${text} and ${other}`).not.toBe(value)
    this.#values.set(text, { kind, value })
  }

  /** What the page shows, with the values that are known already. */
  #withValues(shown: string): string {
    return [...this.#values].reduce((text, [from, { value }]) => text.replaceAll(from, value), shown)
  }
}

function literal(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')
}
