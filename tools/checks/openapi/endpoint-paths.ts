import type { Endpoint } from '../../../gateway/src/api/endpoint.ts'

/** The path with its parameters in braces, as in OpenAPI: `/api/v1/wallets/{walletId}`. */
export function templateOf({ path }: Pick<Endpoint, 'path'>): string {
  return path.replace(/:(\w+)/g, '{$1}')
}

/** The path of the endpoint's example. */
export function examplePathOf({ path, example: { params = {} } }: Pick<Endpoint, 'path' | 'example'>): string {
  return path.replace(/:(\w+)/g, (_, name: string) => params[name]!)
}
