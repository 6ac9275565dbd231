import { describe, expect, test } from 'vitest'
import { parsePastedRequest } from './browser/pasted-request.ts'

describe('a curl command', () => {
  test.each([
    ['curl http://h/p', 'GET', 'http://h/p', ''],
    ['$ curl -sS "http://h/p?a=b#top"', 'GET', 'http://h/p?a=b', ''],
    ['curl -XDELETE http://h/p', 'DELETE', 'http://h/p', ''],
    ["curl --request PUT --url 'http://h/p'", 'PUT', 'http://h/p', ''],
    ['curl http://h/p -d \'{"a": 1}\'', 'POST', 'http://h/p', '{"a": 1}'],
    ['curl http://h/p -d "{\\"a\\": \\"\\$1\\"}"', 'POST', 'http://h/p', '{"a": "$1"}'],
    ["curl http://h/p --data-raw 'it'\\''s'", 'POST', 'http://h/p', "it's"],
    ["curl http://h/p --data-binary $'a\\n\\x41\\u00e9\\''", 'POST', 'http://h/p', "a\nAé'"],
    ['curl http://h/p -d a=1 -d b=2', 'POST', 'http://h/p', 'a=1&b=2'],
    ['curl -o file --max-time 5 \\\n  http://h/p', 'GET', 'http://h/p', ''],
    ["curl http://h/p --json '{}'", 'POST', 'http://h/p', '{}'],
    ["curl http://h/p -d ''", 'POST', 'http://h/p', ''],
  ])('%s', (command, method, target, body) => {
    expect(parsePastedRequest(command)).toMatchObject({ method, target, body })
  })

  test('headers, in any case', () => {
    const request = parsePastedRequest(`curl http://h/p -H 'X-Nonce: a:b' -H"x-timestamp:1" --header "X-Api-Key: ak_1"`)
    expect(Object.fromEntries(request!.headers)).toEqual({ 'x-nonce': 'a:b', 'x-timestamp': '1', 'x-api-key': 'ak_1' })
  })

  test.each([
    ['curl http://h/p -d @order.json', 'order.json'],
    ['curl http://h/p --data-binary @-', '-'],
    ["curl http://h/p --data-raw '@order.json'", undefined],
    ["curl http://h/p -d '{}'", undefined],
  ])('%s: the body is in the file %s', (command, bodyFile) => {
    expect(parsePastedRequest(command)).toMatchObject({ method: 'POST', bodyFile })
  })

  test.each([
    [`curl http://h/p -H "X-Nonce: $nonce" -H "X-Timestamp: \${time}" -H "X-A: $nonce"`, ['$nonce', `\${time}`]],
    ['curl $URL -d "$(cat order.json)" -H "X-Nonce: `uuidgen`"', ['$URL', '$(…)', '`…`']],
    ['curl http://h/p -d \'{"a":"$b"}\' -H "X-A: \\$c" -H X-B:\\$d', []],
  ])('%s: the shell replaces %j', (command, variables) => {
    expect(parsePastedRequest(command)!.variables).toEqual(variables)
  })

  test('without a URL it is no request', () => {
    expect(parsePastedRequest('curl -sS')).toBeUndefined()
  })
})

describe('the text of an HTTP request', () => {
  test.each(['\n', '\r\n'])('with line ends %j', end => {
    const lines = ['POST /api/v1/x?a=b HTTP/1.1', 'Host: h:8080', 'X-Nonce: n', '', '{"a":', '', '1}']
    const request = parsePastedRequest(lines.join(end))!
    expect(request).toMatchObject({
      method: 'POST',
      target: '/api/v1/x?a=b',
      body: '{"a":\n\n1}'.replaceAll('\n', end),
    })
    expect(Object.fromEntries(request.headers)).toEqual({ host: 'h:8080', 'x-nonce': 'n' })
  })

  test('the version may be missing, and there may be no body', () => {
    expect(parsePastedRequest('GET /p')).toMatchObject({ method: 'GET', target: '/p', body: '' })
  })

  test.each(['', 'hello world', 'X-Nonce: 1', 'one two three four'])('%j is no request', text => {
    expect(parsePastedRequest(text)).toBeUndefined()
  })
})
