/** Where a server listens. */
export type Address = { host: string; port: number }
type Login = { username?: string | undefined; password?: string | undefined }

/** What REDIS_URL says. */
export type RedisTarget =
  | { mode: 'standalone'; url: string }
  | { mode: 'sentinel'; isTls: boolean; login: Login; seeds: Address[]; name: string; sentinelLogin: Login }
  | { mode: 'cluster'; isTls: boolean; login: Login; seeds: Address[] }

const form = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^/?#]*))?(?:\?([^#]*))?$/
const sentinelParameters = ['sentinelUsername', 'sentinelPassword']

/**
 * Parses REDIS_URL: `redis://…`, `redis+sentinel://USER:PASSWORD@HOST:PORT,…/NAME`, `redis+cluster://USER:PASSWORD@HOST:PORT,…`, or
 * the same with `rediss`, for TLS.
 *
 * @throws Error whose message completes a sentence that begins with the variable's name. It does not contain the URL, which
 *   contains a password
 */
export function parseRedisUrl(text: string): RedisTarget {
  const scheme = /^[^:]*/.exec(text)![0]
  if (scheme === 'redis' || scheme === 'rediss') {
    if (!URL.parse(text)?.hostname) throw new Error('must name a host, like redis://HOST:PORT')
    return { mode: 'standalone', url: text }
  }
  if (!/^rediss?\+(sentinel|cluster)$/.test(scheme))
    throw new Error('must be a URL that begins with redis://, redis+sentinel:// or redis+cluster://, or rediss for TLS')
  const [, protocol, mode, userInfo = '', hosts, path = '', query = ''] = form.exec(text) ?? []
  if (!hosts)
    throw new Error(
      `must have the form ${scheme}://USER:PASSWORD@HOST:PORT,HOST:PORT${scheme.endsWith('sentinel') ? '/NAME' : ''}, with percent-encoding in USER and PASSWORD`,
    )
  const shared = {
    isTls: protocol === 'rediss',
    login: toLogin(userInfo),
    seeds: toAddresses(hosts, mode === 'sentinel' ? 26_379 : 6_379),
  }
  const parameters = new URLSearchParams(query)
  if (mode === 'cluster') {
    if (path || query) throw new Error('must end after the hosts: Redis Cluster has neither names nor databases')
    return { mode, ...shared }
  }
  if (!path) throw new Error('must end with the name under which the Sentinels know the primary, like /mymaster')
  for (const name of parameters.keys())
    if (!sentinelParameters.includes(name))
      throw new Error(`must have no parameters besides ${sentinelParameters.join(' and ')}`)
  const [username, password] = sentinelParameters.map(name => parameters.get(name) ?? undefined)
  return { mode: 'sentinel', ...shared, name: decode(path), sentinelLogin: { username, password } }
}

export function addressText({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function toLogin(userInfo: string): Login {
  const [username = '', ...password] = userInfo.split(':')
  return { username: decode(username) || undefined, password: decode(password.join(':')) || undefined }
}

function toAddresses(hosts: string, defaultPort: number): Address[] {
  const addresses = hosts.split(',').map(entry => {
    const url = /^(\[[^\]]+\]|[^:[\]]+)(:\d+)?$/.test(entry) ? URL.parse(`redis://${entry}`) : null
    if (!url) throw new Error('must name the hosts as HOST:PORT, separated by commas')
    return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port) || defaultPort }
  })
  // Each Sentinel has one vote.
  if (new Set(addresses.map(addressText)).size < addresses.length) throw new Error('must name each host once')
  return addresses
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('has a % that does not begin a percent-encoded character')
  }
}
