import type { ErrorCode, RefusalStep } from '@workspace-wallet/contract'

/** The step of section 5.3 that answers with a code. All other codes come from endpoints. */
const stepOfCode: Partial<Record<ErrorCode, RefusalStep>> = {
  GA2001: 'key',
  GA2011: 'key',
  GA2021: 'key-status',
  GA2032: 'workspace',
  GA2034: 'workspace',
  GA2013: 'timestamp-and-nonce',
  GA2012: 'signature',
  GA2022: 'address',
  GA2024: 'scope',
  '50090201': 'scope',
  S029: 'rate-limit',
}

export function stepOf(code: ErrorCode): RefusalStep {
  return stepOfCode[code] ?? 'endpoint'
}
