/** Path and query of a request target as sent, percent-encoding unchanged. */
export type RequestTarget = { path: string; query: string }

/** Splits a request target at its first `?`. The scheme and authority of an absolute form (`http://host/path`) are removed. */
export function parseRequestTarget(url: string): RequestTarget {
  const target = url.startsWith('/') ? url : url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  return { path: path === '' ? '/' : path, query: mark < 0 ? '' : target.slice(mark + 1) }
}
