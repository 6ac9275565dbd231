import { element, withLineEnds } from './elements.ts'

/** Two texts, each with its differing part marked: from the first character that differs to the last one. */
export function markedDifference(expected: string, other: string): { expected: Node[]; other: Node[] } {
  const isSame = (at: number, of = (text: string, index: number) => text[index]) => of(expected, at) === of(other, at)
  const shortest = Math.min(expected.length, other.length)
  let start = 0
  while (start < shortest && isSame(start)) start++
  let end = 0
  while (end < shortest - start && isSame(end, (text, index) => text[text.length - 1 - index])) end++
  const marked = (text: string, kind: string) => [
    ...withLineEnds(text.slice(0, start)),
    ...(text.length > start + end
      ? [element('mark', { class: kind }, ...withLineEnds(text.slice(start, text.length - end)))]
      : []),
    ...withLineEnds(text.slice(text.length - end)),
  ]
  return { expected: marked(expected, 'expected'), other: marked(other, 'other') }
}
