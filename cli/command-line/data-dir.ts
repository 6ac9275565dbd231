import { join, relative } from 'node:path'

const inCheckout = join(import.meta.dirname, '../../.data')

/**
 * The directory for data, secrets and logs of `npm start`: DATA_DIR, or else `.data` in this checkout, from whichever directory a
 * program is run. Relative to `from` if it is below.
 */
export function dataDirOf({ DATA_DIR: given }: NodeJS.ProcessEnv, from = process.cwd()): string {
  if (given) return given
  const path = relative(from, inCheckout)
  return path.startsWith('..') ? inCheckout : path
}
