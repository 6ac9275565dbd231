/** No candidate is this long. It bounds the work, in characters. */
const maxLength = 64

/** The candidate that a mistyped word most likely stands for; undefined if none is similar. */
export function nearest(typed: string, candidates: readonly string[]): string | undefined {
  if (typed.length > maxLength) return
  const wanted = typed.toLowerCase()
  const completions = candidates.filter(candidate => wanted.length >= 3 && candidate.toLowerCase().startsWith(wanted))
  if (completions.length === 1) return completions[0]
  const [best] = candidates
    .map(candidate => ({ candidate, distance: editDistance(wanted, candidate.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance)
  return best && best.distance <= Math.max(1, Math.floor(best.candidate.length / 3)) ? best.candidate : undefined
}

/** Levenshtein distance. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1]
    for (let column = 1; column <= to.length; column++)
      next.push(
        Math.min(row[column]! + 1, next[column - 1]! + 1, row[column - 1]! + (letter === to[column - 1] ? 0 : 1)),
      )
    row = next
  }
  return row[to.length]!
}
