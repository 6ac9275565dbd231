import { expect } from 'vitest'
import { type VaryingKind, varyingKinds } from './varying-values.ts'

const anyVarying = new RegExp(varyingKinds.map(({ pattern }) => `(${pattern})`).join('|'), 'g')

/**
 * Compares outputs with those that a page shows, from its top to its end. Only IDs, secrets, UUIDs and times differ from run
 * to run, and the same one on the page is the same one in the run. A line of `…` stands for one or more lines.
 */
export class ShownOutputs {
  /** By the value that the page shows. */
  readonly #values = new Map<string, { kind: VaryingKind; value: string }>()

  /** @param step what has printed the output, for the error */
  expectSame(output: string, shown: string, step: string): void {
    const { pattern, groups } = this.#patternOf(shown)
    const match = pattern.exec(output)
    if (!match) expect(output, `${step}\nprints something else`).toBe(this.#withValues(shown))
    for (const [at, { text, kind }] of groups.entries()) this.#learn(text, kind, match!.groups![`g${at}`]!, step)
  }

  #patternOf(shown: string): { pattern: RegExp; groups: { text: string; kind: VaryingKind }[] } {
    const groups: { text: string; kind: VaryingKind }[] = []
    const patternOfLine = (line: string) => {
      if (line.trim() === '…') return '(?:.*\\n)+?'
      return `${split(line)
        .map(({ text, kind }) => {
          if (!kind) return literal(text)
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

  #learn(text: string, kind: VaryingKind, value: string, step: string): void {
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

/** The pieces of a line: what differs from run to run, with its kind, and what is between. */
function split(line: string): { text: string; kind?: VaryingKind }[] {
  const pieces: { text: string; kind?: VaryingKind }[] = []
  let end = 0
  for (const match of line.matchAll(anyVarying)) {
    const kind = varyingKinds[match.slice(1).findIndex(group => group !== undefined)]!
    pieces.push({ text: line.slice(end, match.index) }, { text: match[0], kind })
    end = match.index + match[0].length
  }
  return [...pieces, { text: line.slice(end) }]
}

function literal(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')
}
