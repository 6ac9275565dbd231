import { expect, test } from 'vitest'
import { namesSetBy } from './pages.ts'
import { differences, Transcript } from './transcript.ts'

const idOf = (prefix: string, letter: string) => `${prefix}_0${letter.repeat(25)}`

function transcriptOf(...steps: [command: string, output: string][]): string {
  const transcript = new Transcript()
  for (const [command, output] of steps) transcript.add(command, `${output}\n`)
  return transcript.text
}

const order = (transferId: string, createdAt: string, amount = '1.00') =>
  JSON.stringify({ timestamp: 1795335382719, transferId, createdAt, amount, remark: null }, null, 2)
const [noon, later] = ['2026-11-22T12:00:00.000Z', '2026-11-22T12:00:01.500Z']

test('two runs that differ in IDs and times have the same transcript', () => {
  const first = transcriptOf(['pay', order(idOf('trf', 'a'), noon)], ['show', idOf('evt', 'a')])
  const second = transcriptOf(['pay', order(idOf('trf', 'b'), later)], ['show', idOf('evt', 'b')])
  expect(first).toBe(second)
  expect(first).toContain(
    '"transferId": "trf_<1>",\n  "createdAt": "<time>",\n  "amount": "1.00",\n  "remark": null\n}',
  )
  expect(first).toContain('$ show\nevt_<1>\n')
})

test.each([
  ['an amount', order(idOf('trf', 'a'), noon, '1.01')],
  ['a field that is missing', order(idOf('trf', 'a'), noon).replace(/,\n {2}"remark": null/, '')],
  ['a field more', order(idOf('trf', 'a'), noon).replace('null', 'null,\n  "note": null')],
  ['a time in place of null', order(idOf('trf', 'a'), noon).replace('null', `"${noon}"`)],
  ['an ID of another kind', order(idOf('wal', 'a'), noon)],
  ['a line at the end', `${order(idOf('trf', 'a'), noon)}\na warning`],
])('every change of an output changes the transcript: %s', (_, output) => {
  expect(transcriptOf(['pay', output])).not.toBe(transcriptOf(['pay', order(idOf('trf', 'a'), noon)]))
})

test('one ID in place of two changes the transcript, and so does a value that the reader has chosen', () => {
  const [a, b] = [idOf('wal', 'a'), idOf('wal', 'b')]
  expect(transcriptOf(['list', `${a} ${b}`])).not.toBe(transcriptOf(['list', `${a} ${a}`]))
  expect(transcriptOf(['at=1767225600; sign', '1767225600'])).toContain('\n1767225600\n')
})

test('differences have the command, and both lines, or all lines if their number differs', () => {
  const from = transcriptOf(['balance', '{\n"balance": "1.00"\n}'], ['list', 'a'], ['head', '6'])
  expect(differences(from, from)).toBe('')
  const after = transcriptOf(['balance', '{\n"balance": "2.00"\n}'], ['list', 'a\nb'], ['head', '6'])
  expect(differences(after, from)).toBe('$ balance\n- "balance": "1.00"\n+ "balance": "2.00"\n$ list\na\nb\n')
})

test('the names that commands set are found', () => {
  const commands = [
    'a=1 b=$(c=2; echo $c)',
    'f() { echo "$1"; }',
    'export D=3 E=4 && F=5 node x.ts',
    'for g in 1; do :; done',
  ]
  const { variables, functions } = namesSetBy([...commands, 'until [ $(count) = 2 ]; do :; done; path=/api'])
  expect(variables.sort()).toEqual(['D', 'E', 'F', 'a', 'b', 'c', 'g', 'path'])
  expect(functions).toEqual(['f'])
})
