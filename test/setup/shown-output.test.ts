import { describe, expect, test } from 'vitest'
import { ShownOutputs } from './shown-output.ts'

const idOf = (letter: string) => `wal_0${letter.repeat(25)}`
const [main, savings, other] = [idOf('a'), idOf('b'), idOf('c')]
const [noon, later] = ['2026-11-22T12:00:00.000Z', '2026-11-22T12:00:01.500Z']

/** Whether the outputs of a page are accepted. */
function accepts(...steps: [shown: string, output: string][]): boolean {
  const outputs = new ShownOutputs()
  try {
    for (const [shown, output] of steps) outputs.expectSame(`${output}\n`, `${shown}\n`, '$ command')
    return true
  } catch {
    return false
  }
}

describe('a page that is followed on a new demo', () => {
  test.each([
    ['equal text', [['moved 1.00 USD', 'moved 1.00 USD']]],
    ['other IDs', [[`from ${main} to ${savings}`, `from ${other} to ${main}`]]],
    [
      'an ID that is shown again',
      [
        [main, other],
        [`{"walletId":"${main}"}`, `{"walletId":"${other}"}`],
      ],
    ],
    ['other times, of which some coincide', [[`${noon} ${later}`, `${noon} ${noon}`]]],
    ['lines that are left out', [['{\n  …\n  "a": 1\n}', '{\n  "b": 2,\n  "c": 3,\n  "a": 1\n}']]],
  ] as [string, [string, string][]][])('%s', (_, steps) => {
    expect(accepts(...steps)).toBe(true)
  })

  test.each([
    ['other text', [['moved 1.00 USD', 'moved 1.01 USD']]],
    ['text before', [['200 OK', 'a warning\n200 OK']]],
    ['text after', [['200 OK', '200 OK\na warning']]],
    ['nothing in place of lines that are left out', [['{\n  …\n}', '{\n}']]],
    ['text in place of an ID', [[main, 'demo-main']]],
    ['an ID of another kind', [[main, main.replace('wal', 'trf')]]],
    ['two IDs in place of one', [[`${main} ${main}`, `${main} ${savings}`]]],
    [
      'another ID than in an earlier step',
      [
        [main, savings],
        [main, other],
      ],
    ],
    ['one ID in place of two', [[`${main} ${savings}`, `${other} ${other}`]]],
    ['two times in place of one', [[`${noon} ${noon}`, `${noon} ${later}`]]],
    ['another position', [[`7 ${main}`, `8 ${main}`]]],
  ] as [string, [string, string][]][])('is rejected: %s', (_, steps) => {
    expect(accepts(...steps)).toBe(false)
  })
})
