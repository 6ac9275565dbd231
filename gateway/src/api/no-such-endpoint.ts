import { DomainError } from '@workspace-wallet/contract'
import { nearest } from '@workspace-wallet/runtime'
import { endpoints } from './endpoints.ts'

/** Longer paths are cut in error messages. */
const maxShownPath = 200

/** 50090201, for a method and path that no endpoint declares (section 5.4). */
export function noSuchEndpoint(method: string, path: string): DomainError {
  if (path.length > maxShownPath)
    return new DomainError('50090201', { method, path: `${path.slice(0, maxShownPath)}…` })
  const similar = nearestEndpoint(method, path)
  return new DomainError('50090201', { method, path, ...(similar && { nearest: similar }) })
}

/**
 * The method and path that are probably meant: those of an endpoint whose path differs only in slashes, letter case,
 * misspelled segments or missing parameters at its end, which are shown as `{name}`. Parameters stay as sent. Undefined if
 * there is none.
 */
function nearestEndpoint(method: string, path: string): string | undefined {
  const sent = path.split('/').filter(segment => segment !== '')
  const found = endpoints.flatMap(endpoint => {
    const names = endpoint.path.split('/').slice(1)
    const isNear = (name: string, at: number) =>
      name.startsWith(':') || (sent[at] !== undefined && nearest(sent[at], [name]) !== undefined)
    if (names.length < sent.length || !names.every(isNear)) return []
    const segments = names.map((name, at) => (name.startsWith(':') ? (sent[at] ?? `{${name.slice(1)}}`) : name))
    return { method: endpoint.method, segments }
  })
  // A path parameter matches anything, so a complete path is preferred, then an identical one, and then the same method.
  const likeness = ({ segments, ...endpoint }: (typeof found)[number]) =>
    (segments.length === sent.length ? 4 : 0) +
    (segments.join('/') === sent.join('/') ? 2 : 0) +
    (endpoint.method === method ? 1 : 0)
  const [best] = found.sort((a, b) => likeness(b) - likeness(a))
  return best && `${best.method} /${best.segments.join('/')}`
}
