/** A piece of a text, and what it is; undefined for everything that has no color. */
export type Token = [kind: 'comment' | 'string' | 'key' | 'number' | 'keyword' | 'variable' | undefined, text: string]

const javaScript = {
  comment: /\/\/[^\n]*|\/\*[\s\S]*?\*\//,
  string: /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`/,
  keyword:
    /\b(?:import|from|export|const|let|function|async|await|return|if|else|for|of|in|new|throw|try|catch|finally|switch|case|break|continue|while|type|class|extends|true|false|null|undefined|typeof|as)\b/,
  number: /\b\d[\d_.]*\b/,
}

/** What has a color in each language. Nothing depends on it: a text without a rule is shown as it is. */
const rules = {
  json: {
    key: /"(?:[^"\\]|\\.)*"(?=\s*:)/,
    string: /"(?:[^"\\]|\\.)*"/,
    keyword: /\b(?:true|false|null)\b/,
    number: /-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/,
  },
  typescript: javaScript,
  python: {
    comment: /#[^\n]*/,
    string: /\b[rbf]?"""[\s\S]*?"""|\b[rbf]?"(?:[^"\\\n]|\\.)*"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/,
    keyword:
      /\b(?:import|from|def|class|return|if|elif|else|for|in|while|try|except|finally|with|as|raise|not|and|or|is|lambda|None|True|False|pass)\b/,
    number: /\b\d[\d_.]*\b/,
  },
  go: {
    comment: /\/\/[^\n]*/,
    string: /`[^`]*`|"(?:[^"\\\n]|\\.)*"/,
    keyword:
      /\b(?:package|import|func|return|if|else|for|range|defer|go|var|const|type|struct|map|string|byte|int|error|nil|true|false|make)\b/,
    number: /\b\d[\d_.]*\b/,
  },
  shell: {
    comment: /(?<=^|\s)#[^\n]*/,
    string: /'[^']*'|"(?:[^"\\]|\\[\s\S])*"/,
    variable: /\$\{[^}]*\}|\$\w+/,
    keyword: /(?<=^|[\n|;&(] *)(?:curl|openssl|printf|cut|date|export|npm|node|python3|docker|sh|go)\b/,
  },
  sql: {
    comment: /--[^\n]*/,
    string: /'[^']*'/,
    keyword: /\b(?:select|insert|into|update|delete|from|where|and|or|create|table|primary|key|not|null|values|set)\b/i,
    number: /\b\d+\b/,
  },
} satisfies Record<string, Partial<Record<NonNullable<Token[0]>, RegExp>>>

export type Language = keyof typeof rules

const names: Record<string, Language> = {
  js: 'typescript',
  ts: 'typescript',
  javascript: 'typescript',
  py: 'python',
  sh: 'shell',
  bash: 'shell',
  curl: 'shell',
}

/** The language with this name, such as `ts` after the fence of a code block. */
export function languageOf(name: string): Language | undefined {
  const language = names[name] ?? name
  return Object.hasOwn(rules, language) ? (language as Language) : undefined
}

const patterns = new Map(
  Object.entries(rules).map(([language, kinds]) => [
    language,
    new RegExp(
      Object.entries(kinds)
        .map(([kind, { source }]) => `(?<${kind}>${source})`)
        .join('|'),
      language === 'sql' ? 'gi' : 'g',
    ),
  ]),
)

/** The tokens of a text, which together are the text. */
export function tokensOf(text: string, language: Language): Token[] {
  const tokens: Token[] = []
  let end = 0
  for (const match of text.matchAll(patterns.get(language)!)) {
    if (match.index > end) tokens.push([undefined, text.slice(end, match.index)])
    const kind = Object.entries(match.groups!).find(([, found]) => found !== undefined)![0]
    tokens.push([kind as Token[0], match[0]])
    end = match.index + match[0].length
  }
  if (end < text.length) tokens.push([undefined, text.slice(end)])
  return tokens
}
