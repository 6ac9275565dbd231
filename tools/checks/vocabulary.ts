import type { Source } from './sources.ts'

/** Words that this project does not use, each with the standard term to use instead. */
const terms: readonly [forbidden: RegExp, instead: string][] = [
  [/\bflights?\b(?<!\bin flight)|takeOff|\bboarded\b|inTheAir/i, 'batch, send, split, inFlight'],
  [/\blanes?\b|LANES/i, 'shard'],
  [/\bTurns\b/, 'WorkspaceConcurrencyLimit'],
  [/\b(deaf|shunned|owed)\b/i, 'unresponsive, cooling down, pending'],
  [
    /(\b|_)([sS]eal)(s|ed|ing|er)?(?![a-z])|[a-z]Seal(?![a-z])|Sealed|SEAL/,
    'checkpoint; encrypted secret; key-ID checksum',
  ],
  [/#era\b|nonce memory|memory of nonces|nonces:memory/i, 'generation of the nonce store'],
  [/\bKeyDirectory\b/, 'KeyCache'],
  [/\bEdge\b(?=[ ,;>)]*(\{|,|=))/, 'PipelineDependencies'],
  [/\bLegs?\b|\blegs?\b|legMac/, 'entry'],
  [/AuditAct\b|recordAct\b|\.act\b|\bacts on none\b/, 'action'],
  [/data\??\.wire\b|WireError|fromWire/, 'appError'],
  [/\bRefusal\b(?=\(|\b.*from)/, 'AdminError'],
  [/underChainKey|\binLog\b|\bhurr(y|ied)\b/i, 'requireChainKey, withBatchLog, forceStop'],
  [/\b(house|walls?)\b/i, 'architecture, module, boundary'],
]

/** All forbidden words of a text, as `path:line word: use …`. */
export function forbiddenWords({ path, text }: Source): string[] {
  return text.split('\n').flatMap((line, at) =>
    terms.flatMap(([forbidden, instead]) => {
      const found = forbidden.exec(line)
      return found ? [`${path}:${at + 1} ${found[0]}: use ${instead}`] : []
    }),
  )
}
