import { type ErrorCode, errorTable } from '@workspace-wallet/contract'
import type { Endpoint } from '../../../gateway/src/api/endpoint.ts'

/**
 * The codes of every endpoint: of the pipeline (section 5.3), of a request that is not valid HTTP or whose body is too slow
 * (S012) or too large (S013), of limits, and of faults of the service.
 */
export const commonErrors = [
  'S012',
  'GA2001',
  'GA2011',
  'GA2012',
  'GA2013',
  'GA2021',
  'GA2022',
  'GA2024',
  'GA2034',
  'GA2032',
  'S013',
  'S029',
  'S001',
  'S002',
] as const satisfies ErrorCode[]
/** The codes of every endpoint with a body, all of which are commands. */
export const commandErrors = ['S015', 'S003'] as const satisfies ErrorCode[]

/** The other reason for S012, which only lists and statements have. */
export const expensiveReads = [
  'A list that would take more than two seconds to count and sort fails with `S012`, and so does a statement that would take',
  'more than two seconds to add up. `detail` says how to narrow the request.',
]

/** All codes that an endpoint can return. */
export function errorsOf({ errors, body }: Pick<Endpoint, 'errors' | 'body'>): ErrorCode[] {
  return [...commonErrors, ...(body ? commandErrors : []), ...errors]
}

/** Codes by their HTTP status, lowest first. */
export function byStatus(codes: readonly ErrorCode[]): [status: number, codes: ErrorCode[]][] {
  const groups = Map.groupBy(codes, code => errorTable[code].http as number)
  return [...groups].toSorted(([a], [b]) => a - b)
}
