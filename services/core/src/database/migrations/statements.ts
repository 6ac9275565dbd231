/** The statements of a text, one by one, because Citus sends the text of some to its workers, which take no others with it. */
export function statementsOf(sql: string): string[] {
  return Array.from(sql.matchAll(/(?:--.*|'[^']*'|\$\$[\s\S]*?\$\$|[^;])+/g), ([text]) => text.trim()).filter(
    isStatement,
  )
}

function isStatement(text: string): boolean {
  return text.replaceAll(/--.*/g, '').trim() !== ''
}
