import { parseRequestTarget } from '../../auth/request-target.ts'
import { millisecondsPattern, noncePattern, secondsPattern } from '../../auth/signing/header-patterns.ts'
import { type Diagnosis, diagnose, type SentRequest } from './diagnosis.ts'
import { markedDifference } from './differences.ts'
import { codeBlock, element, elementById, withLineEnds } from './elements.ts'
import { type PastedRequest, parsePastedRequest } from './pasted-request.ts'
import { prepareSearch } from './search.ts'
import { insecurePage, prepareSecret } from './secret-input.ts'

const form = elementById('request', HTMLFormElement)
const pasted = elementById('pasted', HTMLTextAreaElement)
const body = elementById('body', HTMLTextAreaElement)
const ownMessage = elementById('own-message', HTMLTextAreaElement)
const [method, target, apiKey, timestamp, nonce, signature, secret, ownHash] = (
  ['method', 'target', 'api-key', 'timestamp', 'nonce', 'signature', 'secret', 'own-hash'] as const
).map(id => elementById(id, HTMLInputElement)) as [Input, Input, Input, Input, Input, Input, Input, Input]
const pastedProblems = elementById('pasted-problems', HTMLElement)
const verdict = elementById('verdict', HTMLElement)
const stages = elementById('stages', HTMLOListElement)
const mistakes = elementById('mistakes', HTMLUListElement)

type Input = HTMLInputElement

/** The host of the pasted request. */
let host = ''
/** The number of the latest update. Results of earlier ones are not shown. */
let latest = 0

prepareSecret(secret)
prepareSearch()
form.addEventListener('submit', event => event.preventDefault())
pasted.addEventListener('input', fillIn)
form.addEventListener('input', update)
void update()

function fillIn(): void {
  const request = parsePastedRequest(pasted.value)
  pastedProblems.replaceChildren(
    ...problemsOf(request).map(sentence => element('p', { class: 'verdict bad' }, sentence)),
  )
  if (!request) return
  const { headers } = request
  method.value = request.method
  target.value = request.target
  body.value = request.body
  host = headers.get('host') ?? ''
  for (const [input, name] of [
    [apiKey, 'x-api-key'],
    [timestamp, 'x-timestamp'],
    [nonce, 'x-nonce'],
    [signature, 'x-signature'],
  ] as const)
    input.value = headers.get(name) ?? ''
}

/** What the page cannot know from what was pasted. */
function problemsOf(request: PastedRequest | undefined): string[] {
  if (!request)
    return pasted.value.trim() === ''
      ? []
      : ['This is neither a curl command nor an HTTP request. Enter its parts below.']
  const { bodyFile, variables } = request
  return [
    ...(bodyFile === undefined ? [] : [`curl sent the content of ${bodyFile || 'a file'}. Paste it into Body below.`]),
    ...(variables.length === 0
      ? []
      : [
          `Your shell replaced ${list(variables)}, and this page cannot. Enter the values that were sent below, as curl --verbose prints them.`,
        ]),
  ]
}

function readRequest(): SentRequest {
  const { path, query } = parseRequestTarget(target.value.trim())
  return {
    apiKey: apiKey.value.trim(),
    method: method.value.trim(),
    path,
    query,
    host: URL.parse(target.value.trim())?.host || host || location.host,
    timestamp: timestamp.value.trim(),
    nonce: nonce.value.trim(),
    body: body.value,
    signature: signature.value.trim(),
    apiSecret: secret.value.trim(),
  }
}

async function update(): Promise<void> {
  const number = ++latest
  if (!isSecureContext) return show(element('p', { class: 'verdict bad' }, insecurePage))
  const missing = missingFields()
  if (missing.length > 0) {
    stages.replaceChildren()
    return show(element('p', {}, `Enter ${list(missing)}.`))
  }
  const request = readRequest()
  const diagnosis = await diagnose(request)
  if (number !== latest) return
  stages.replaceChildren(bodyStage(request, diagnosis), messageStage(diagnosis), signatureStage(request, diagnosis))
  show(...verdictOf(request, diagnosis))
  for (const item of mistakes.children)
    item.classList.toggle('found', (item as HTMLElement).dataset.mistake === diagnosis.mistake)
}

/** Screen readers read the verdict when it changes, so it changes only if its text does. */
function show(...nodes: HTMLElement[]): void {
  if (nodes.map(node => node.outerHTML).join('') !== verdict.innerHTML) verdict.replaceChildren(...nodes)
}

function missingFields(): string[] {
  const needed = {
    'the method': method,
    'the URL or path': target,
    'X-Timestamp': timestamp,
    'X-Nonce': nonce,
    'the API secret': secret,
  }
  return Object.entries(needed)
    .filter(([, { value }]) => value.trim() === '')
    .map(([name]) => name)
}

function list(names: string[]): string {
  return new Intl.ListFormat('en').format(names)
}

function verdictOf(request: SentRequest, { verdict: kind, mistake, message }: Diagnosis): HTMLElement[] {
  if (kind === 'UNKNOWN') return [element('p', {}, 'Enter the X-Signature of your client to compare it.')]
  if (kind === 'MATCHES')
    return [
      element('p', { class: 'verdict good' }, element('strong', {}, 'The signature is correct.')),
      ...headerProblems(request),
    ]
  return [
    element('p', { class: 'verdict bad' }, element('strong', {}, 'The signature is wrong.')),
    element('p', {}, mistake ? sentenceOf(mistake) : adviceFor(message)),
    ...headerProblems(request),
  ]
}

function sentenceOf(mistake: string): string {
  return mistakes.querySelector(`[data-mistake="${mistake}"]`)?.textContent ?? mistake
}

/** Advice if no known mistake explains the difference. */
function adviceFor(message: string): string {
  if (ownMessage.value === '')
    return 'None of the usual mistakes explains it. Check that the secret belongs to the key. To see which part differs, enter the canonical message of your client below the secret.'
  if (ownMessage.value === message)
    return 'Your canonical message is right, so your client used another secret, or computed the HMAC in another way.'
  return 'Your canonical message differs: see below.'
}

/** What the server rejects before it checks the signature. */
function headerProblems({ timestamp, nonce }: SentRequest): HTMLElement[] {
  const problems: string[] = []
  if (millisecondsPattern.test(timestamp)) problems.push('X-Timestamp is in milliseconds: send whole seconds.')
  else if (!secondsPattern.test(timestamp)) problems.push('X-Timestamp must be whole seconds since 1970, digits only.')
  if (!noncePattern.test(nonce)) problems.push('X-Nonce must be 1 to 128 visible ASCII characters.')
  return problems.map(sentence => element('p', { class: 'verdict bad' }, sentence))
}

function bodyStage({ body }: SentRequest, { bodyHash }: Diagnosis): HTMLElement {
  const bytes = new TextEncoder().encode(body).length
  const hashed = bytes === 0 ? 'the empty string, because there is no body' : bytes === 1 ? '1 byte' : `${bytes} bytes`
  return stage('1. Body hash', `SHA-256 of ${hashed}, in lower-case hexadecimal.`, bodyHash, ownHash.value.trim())
}

function messageStage({ message }: Diagnosis): HTMLElement {
  const description = 'Method, path, timestamp, nonce and body hash. ↵ is a line feed: there is none at the end.'
  if (ownMessage.value === '' || ownMessage.value === message)
    return stage('2. Canonical message', description, message, ownMessage.value)
  return element(
    'li',
    {},
    element('h3', {}, '2. Canonical message'),
    element('p', { class: 'hint' }, description),
    ...comparedLines(message, ownMessage.value),
  )
}

const lineNames = ['method', 'path', 'timestamp', 'nonce', 'body hash']

/** The lines of two messages with their line ends, one below the other where they differ. */
function comparedLines(expected: string, other: string): HTMLElement[] {
  const [expectedLines, otherLines] = [expected, other].map(text => text.split(/(?<=\n)/)) as [string[], string[]]
  return Array.from({ length: Math.max(expectedLines.length, otherLines.length) }, (_, at) => {
    const [line = '', own = ''] = [expectedLines[at], otherLines[at]]
    const name = `Line ${at + 1}${lineNames[at] ? `, ${lineNames[at]}` : ''}`
    if (line === own) return element('div', {}, element('h4', {}, `${name}: equal`), codeBlock(...withLineEnds(line)))
    return element('div', {}, element('h4', {}, `${name}: different`), ...comparison(line, own))
  })
}

function signatureStage({ signature: sent }: SentRequest, { signature }: Diagnosis): HTMLElement {
  return stage('3. Signature', 'Base64 of the HMAC-SHA256 of the message, with the secret as the key.', signature, sent)
}

/** One step of section 5.2: the correct value, and how the client's value differs. */
function stage(title: string, description: string, value: string, own: string): HTMLElement {
  const state = own === '' ? '' : own === value ? ': equal' : ': different'
  return element(
    'li',
    {},
    element('h3', {}, title + state),
    element('p', { class: 'hint' }, description),
    ...(own === '' || own === value ? [codeBlock(...withLineEnds(value))] : comparison(value, own)),
  )
}

function comparison(value: string, own: string): HTMLElement[] {
  const marked = markedDifference(value, own)
  return [
    element('p', { class: 'hint' }, 'Right:'),
    codeBlock(...marked.expected),
    element('p', { class: 'hint' }, 'Yours:'),
    codeBlock(...marked.other),
  ]
}
