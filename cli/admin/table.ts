import { printable } from '../command-line/printable.ts'

/** Formats a table for a terminal. */
export function table(headings: string[], rows: string[][]): string {
  const lines = [headings, ...rows.map(row => row.map(printable))]
  const widths = headings.map((_, column) => Math.max(...lines.map(line => line[column]!.length)))
  return lines
    .map(line =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
