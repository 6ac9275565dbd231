import { Resolver } from 'node:dns/promises'

/** Resolves a host name to all of its addresses. @throws Error with the code of the DNS failure */
export type Resolve = (hostname: string) => Promise<string[]>

/**
 * Not `dns.lookup`: it takes one of the few threads of the process until the name is resolved, so that a few names with
 * servers that do not answer would block all others.
 */
const resolver = new Resolver({ timeout: 3_000, tries: 3 })

/** Questions without an answer yet, by name. An answer with thousands of addresses takes milliseconds to read. */
const asked = new Map<string, Promise<string[]>>()

/**
 * Asks DNS for IPv4 and IPv6 addresses, once for all that ask for a name at the same time. `/etc/hosts` is not read: only `localhost`
 * and the names below it are known.
 */
export async function resolveHost(hostname: string): Promise<string[]> {
  if (/^(.*\.)?localhost\.?$/.test(hostname)) return ['127.0.0.1', '::1']
  const known = asked.get(hostname)
  if (known) return known
  const answer = askDns(hostname).finally(() => asked.delete(hostname))
  asked.set(hostname, answer)
  return answer
}

async function askDns(hostname: string): Promise<string[]> {
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const addresses = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length > 0) return addresses
  const [ipv4, ipv6] = answers.map(answer => (answer.status === 'rejected' ? answer.reason : undefined))
  throw ipv4?.code === 'ENODATA' ? ipv6 : ipv4
}
