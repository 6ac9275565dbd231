import { dirname } from 'node:path'
import { importsOf } from './imports.ts'
import { isIn, isTest, type Source } from './sources.ts'

/**
 * Cycles of imports, each as `a -> b -> a`: between files, between folders without their subfolders, and at every depth between
 * folders with all that they contain. Tests may import anything.
 */
export function cycles(sources: readonly Source[]): string[] {
  const imports = sources.filter(({ path }) => !isTest(path) && !isIn(path, 'examples')).flatMap(importsOf)
  const files = graphOf(imports)
  const folders = graphOf(imports.map(({ from, to }) => ({ from: dirname(from), to: dirname(to) })))
  const found = [files, folders, wholeFoldersOf(imports)].flatMap(cyclesOf)
  return [...new Set(found)]
}

/** For each import, the two folders, or a folder and a file, at which the paths of both files part. */
function wholeFoldersOf(imports: readonly { from: string; to: string }[]): Graph {
  return graphOf(
    imports.flatMap(({ from, to }) => {
      const [ofFrom, ofTo] = [from.split('/'), to.split('/')]
      const parting = ofFrom.findIndex((part, at) => part !== ofTo[at])
      // Between top folders, the layers in boundaries.ts decide, which take folders of several of them in turn.
      if (parting === 0) return []
      return { from: ofFrom.slice(0, parting + 1).join('/'), to: ofTo.slice(0, parting + 1).join('/') }
    }),
  )
}

type Graph = ReadonlyMap<string, ReadonlySet<string>>

function graphOf(edges: readonly { from: string; to: string }[]): Graph {
  const graph = new Map<string, Set<string>>()
  for (const { from, to } of edges) {
    if (from === to) continue
    graph.set(from, (graph.get(from) ?? new Set()).add(to))
  }
  return graph
}

/** One shortest cycle through each node that is part of a cycle, without duplicates. */
function cyclesOf(graph: Graph): string[] {
  const found = new Map<string, string>()
  for (const start of graph.keys()) {
    const path = shortestPath(graph, start, start)
    const members = path?.slice(1).toSorted().join()
    if (path && members && !found.has(members)) found.set(members, path.join(' -> '))
  }
  return [...found.values()]
}

function shortestPath(graph: Graph, start: string, end: string): string[] | null {
  const paths = [[start]]
  const seen = new Set<string>()
  for (const path of paths)
    for (const next of graph.get(path.at(-1)!) ?? []) {
      if (next === end) return [...path, next]
      if (seen.has(next)) continue
      seen.add(next)
      paths.push([...path, next])
    }
  return null
}
