import type { ErrorCode, ErrorDetails, FieldFault, FieldReason } from '@workspace-wallet/contract'

/**
 * A language: for every code a sentence that says what a person needs to mend the call. The type checker refuses a
 * language that lacks one. Adding a language is adding one file, and naming it in index.ts.
 */
export type Locale = {
  tag: string
  sentences: { [Code in ErrorCode]: (details: ErrorDetails[Code], locale: Locale) => string }
  fields: Record<FieldReason, (fault: FieldFault) => string>
}
