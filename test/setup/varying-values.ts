/**
 * What differs from run to run in the output of a command; everything else is compared. Of a unique kind, values that are
 * shown as different are different.
 */
export const varyingKinds = [
  { kind: 'secret', pattern: 'whsec_[A-Za-z0-9+/]{43}=', isUnique: true },
  { kind: 'ID', pattern: '\\b[a-z]{2,3}_[0-9a-hjkmnp-tv-z]{26}\\b', isUnique: true },
  { kind: 'UUID', pattern: '\\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\\b', isUnique: true },
  { kind: 'time', pattern: '\\b\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z\\b', isUnique: false },
  { kind: 'milliseconds', pattern: '\\b1[78]\\d{11}\\b', isUnique: false },
  { kind: 'seconds', pattern: '\\b1[78]\\d{8}\\b', isUnique: false },
] as const

export type VaryingKind = (typeof varyingKinds)[number]
