/** Replaces what differs from run to run: IDs, times and UUIDs. */
export function masked(output: string): string {
  return output
    .replaceAll(/\b([a-z]{2,3})_[0-9a-z]{26}\b/g, '$1_ID')
    .replaceAll(/\bwhsec_[A-Za-z0-9+/]{43}=/g, 'whsec_SECRET')
    .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\b/g, 'TIME')
    .replaceAll(/"timestamp": ?\d{13}/g, '"timestamp": NOW')
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UUID')
    .replaceAll(/\b1[78]\d{8}\b/g, 'SECONDS')
}

/** A pattern for the masked output that a page shows. A line of `…` stands for one or more lines. */
export function patternOf(shown: string): RegExp {
  const literal = (line: string) => line.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')
  const lines = masked(shown).split('\n').slice(0, -1)
  return new RegExp(`^${lines.map(line => (line.trim() === '…' ? '(.*\\n)+' : `${literal(line)}\\n`)).join('')}$`)
}
