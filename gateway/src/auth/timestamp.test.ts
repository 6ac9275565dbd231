import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { checkTimestamp } from './timestamp.ts'

const nowSeconds = 1_767_225_600
const request = (text: string) =>
  ({ headers: { 'x-timestamp': text }, headersDistinct: { 'x-timestamp': [text] } }) as unknown as IncomingMessage

test.each([
  [0, 0],
  [-60, 0],
  [60, 0],
  [-60, 999],
  [60, 999],
])('%i s off, at %i ms of the second: inside', (offset, milliseconds) => {
  const text = String(nowSeconds + offset)
  expect(checkTimestamp(request(text), nowSeconds * 1000 + milliseconds)).toBe(text)
})

test.each([-61, 61, -3600, 3600])('%i s off: outside, and the error says how far', offset => {
  expect(() => checkTimestamp(request(String(nowSeconds + offset)), nowSeconds * 1000)).toThrow(
    expect.objectContaining({ code: 'GA2013', details: { header: 'X-Timestamp', reason: 'OFF', secondsOff: offset } }),
  )
})

test('milliseconds have a reason of their own, with the seconds to send instead', () => {
  const fault = (text: string) => {
    try {
      return checkTimestamp(request(text), nowSeconds * 1000)
    } catch (error) {
      return (error as { details: unknown }).details
    }
  }
  expect(fault(`${nowSeconds}123`)).toEqual({ header: 'X-Timestamp', reason: 'MILLISECONDS', seconds: `${nowSeconds}` })
  for (const text of [`${nowSeconds}1`, `${nowSeconds}.5`, `-${nowSeconds}`, '1e9'])
    expect(fault(text)).toEqual({ header: 'X-Timestamp', reason: 'MALFORMED' })
})
