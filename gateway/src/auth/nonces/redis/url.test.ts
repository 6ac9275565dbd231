import { expect, test } from 'vitest'
import { parseRedisUrl } from './url.ts'

const noLogin = { username: undefined, password: undefined }

test('a URL names one server, the Sentinels of a primary, or servers of a cluster', () => {
  const [one, two, three] = [
    { host: '10.0.0.1', port: 26_379 },
    { host: 'b.example', port: 7000 },
    { host: '::1', port: 7001 },
  ]
  expect(parseRedisUrl('rediss://user:secret@a:1/2')).toEqual({
    mode: 'standalone',
    url: 'rediss://user:secret@a:1/2',
  })
  expect(parseRedisUrl('redis+sentinel://10.0.0.1,b.example:7000,[::1]:7001/my%20primary')).toEqual({
    mode: 'sentinel',
    isTls: false,
    login: noLogin,
    seeds: [one, two, three],
    name: 'my primary',
    sentinelLogin: noLogin,
  })
  expect(
    parseRedisUrl('rediss+sentinel://gateway:p%40ss:w%2Fd@b.example:7000/w?sentinelUsername=s&sentinelPassword=a%26b'),
  ).toEqual({
    mode: 'sentinel',
    isTls: true,
    login: { username: 'gateway', password: 'p@ss:w/d' },
    seeds: [two],
    name: 'w',
    sentinelLogin: { username: 's', password: 'a&b' },
  })
  expect(parseRedisUrl('redis+cluster://:only@b.example:7000,10.0.0.1')).toEqual({
    mode: 'cluster',
    isTls: false,
    login: { username: undefined, password: 'only' },
    seeds: [two, { host: '10.0.0.1', port: 6379 }],
  })
})

test.each([
  ['http://h', 'must be a URL that begins with redis://'],
  ['redis+other://h:1', 'must be a URL that begins with redis://'],
  ['h:6379', 'must be a URL that begins with redis://'],
  ['redis://', 'must name a host'],
  ['redis+sentinel://h:1', 'must end with the name under which the Sentinels know the primary'],
  ['redis+sentinel:///name', 'must have the form redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME'],
  ['redis+sentinel://user:se#cret@h:1/name', 'must have the form'],
  ['redis+sentinel://u:se@cret@h:1/name', 'must have the form'],
  ['redis+sentinel://h:1/name/0', 'must have the form'],
  ['redis+sentinel://h:1/name?db=1', 'must have no parameters besides sentinelUsername and sentinelPassword'],
  ['redis+sentinel://h:1,/name', 'must name the hosts as HOST:PORT, separated by commas'],
  ['redis+sentinel://h:99999/name', 'must name the hosts as HOST:PORT'],
  ['redis+sentinel://h,h:26379/name', 'must name each host once'],
  ['redis+cluster://u:100%@h:1', 'has a % that does not begin a percent-encoded character'],
  ['redis+cluster://h:1/0', 'must end after the hosts'],
])('%s is rejected, without its password in the message: %s', (url, message) => {
  expect(() => parseRedisUrl(url)).toThrow(message)
  expect(() => parseRedisUrl(url)).not.toThrow(/secret|cret|100%@/)
})
