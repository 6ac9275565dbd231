import { DomainError } from '@workspace-wallet/contract'
import { nearest } from '@workspace-wallet/runtime'
import { endpoints } from './endpoints.ts'

/** Longer paths are cut in error messages. */
const maxShownPath = 200

/** 50090201, for a method and path that no endpoint declares (section 5.4). */
export function noSuchEndpoint(method: string, path: string): DomainError {
  if (path.length > maxShownPath)
    return new DomainError('50090201', { method, path: `${path.slice(0, maxShownPath)}…` })
  const [first, second] = method === 'POST' ? [endpointOfNoun, nearestEndpoint] : [nearestEndpoint, endpointOfNoun]
  const similar = first(method, path) ?? second(method, path)
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

/**
 * The endpoint for a path that other REST APIs have: `/api/v1/transfers`, `/api/v1/holds/{bizId}`. Reads mean a list or one
 * object, all other methods a create.
 */
function endpointOfNoun(method: string, path: string): string | undefined {
  const [api, version, noun, id, ...more] = path.split('/').filter(segment => segment !== '')
  if (api !== 'api' || version !== 'v1' || noun === undefined || more.length > 0) return undefined
  const isOfNoun = (candidate: string) => {
    const [, , , singular = '', , plural = ''] = candidate.split('/')
    return nearest(noun, [singular, plural]) !== undefined
  }
  const isMeant = (candidate: string) => {
    if (method !== 'GET') return id === undefined && candidate.endsWith('/command/create')
    return id === undefined ? candidate.includes('/query/') : /\/query\/\w+\/:\w+$/.test(candidate)
  }
  const found = endpoints.find(endpoint => isOfNoun(endpoint.path) && isMeant(endpoint.path))
  return found && `${found.method} ${found.path.replaceAll(/:(\w+)/g, (_, name) => id ?? `{${name}}`)}`
}
