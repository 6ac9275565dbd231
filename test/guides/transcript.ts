import { varyingKinds } from '../setup/varying-values.ts'

/** The last ones are in the headers of requests and responses, and in receipts. */
const kinds = [
  ...varyingKinds.map(({ kind, pattern }) => ({ kind, pattern })),
  { kind: 'request ID', pattern: '\\breq_[0-9a-f-]{36}\\b' },
  { kind: 'MAC', pattern: '(?<="mac": ")[\\w-]{44}(?=")' },
  { kind: 'signature', pattern: '(?<=X-Signature: )[A-Za-z0-9+/]{43}=' },
  { kind: 'date', pattern: '\\b[A-Z][a-z]{2}, \\d\\d [A-Z][a-z]{2} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT' },
] as const
const anyKind = new RegExp(kinds.map(({ pattern }) => `(${pattern})`).join('|'), 'g')

/**
 * The commands of a page with everything that they print. What differs from run to run has a placeholder: IDs, secrets and
 * UUIDs are numbered in the order of their first appearance, so the same one keeps its number.
 */
export class Transcript {
  readonly #numbers = new Map<string, number>()
  #commands = ''
  #text = ''

  add(command: string, output: string): void {
    this.#commands += command
    this.#text += `$ ${command}\n${output.replaceAll(anyKind, (...match) => this.#placeholder(match as string[]))}`
  }

  get text(): string {
    return this.#text
  }

  #placeholder([value = '', ...groups]: string[]): string {
    // The reader has chosen it.
    if (this.#commands.includes(value)) return value
    const { kind } = kinds[groups.findIndex(group => group !== undefined)]!
    switch (kind) {
      case 'ID': {
        // The ID of an event has the same 26 characters as that of its transfer.
        const [prefix, characters] = value.split('_')
        return `${prefix}_<${this.#numberOf(characters!)}>`
      }
      case 'secret':
      case 'UUID':
        return `<${kind} ${this.#numberOf(value)}>`
      default:
        return `<${kind}>`
    }
  }

  #numberOf(value: string): number {
    if (!this.#numbers.has(value)) this.#numbers.set(value, this.#numbers.size + 1)
    return this.#numbers.get(value)!
  }
}

/** The commands of a transcript that print something else than in another one, with the lines that differ. */
export function differences(transcript: string, from: string): string {
  const others = stepsOf(from)
  return stepsOf(transcript)
    .flatMap((lines, at) => differentLines(lines, others[at] ?? []))
    .join('')
}

function stepsOf(transcript: string): string[][] {
  return transcript.split(/^(?=\$ )/m).map(step => step.split(/(?<=\n)/))
}

function differentLines(lines: string[], others: string[]): string[] {
  // Lines can only be paired if none is missing.
  if (lines.length !== others.length) return lines
  const changed = lines.flatMap((line, at) => (line === others[at] ? [] : [`- ${others[at]}`, `+ ${line}`]))
  return changed.length > 0 ? [lines[0]!, ...changed] : []
}
