/** The lines of a Markdown table. */
export function table(columns: string[], rows: string[][]): string[] {
  return [columns, columns.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`)
}
