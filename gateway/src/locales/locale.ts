import type { ErrorCode, ErrorDetails, FieldFault, FieldReason, SigningMistake } from '@workspace-wallet/contract'

/**
 * A language: for every error code, a sentence that tells a person how to fix the call. The type checker rejects a
 * language with a missing sentence. To add a language, add one file and list it in localize.ts.
 */
export type Locale = {
  tag: string
  sentences: { [Code in ErrorCode]: (details: ErrorDetails[Code], locale: Locale) => string }
  /** Adds the place of an item of a batch to the sentence for its error. */
  atIndex: (index: number, sentence: string) => string
  fields: Record<FieldReason, (fault: FieldFault) => string>
  /** For GA2012: what the client did, and what to do instead. */
  mistakes: Record<SigningMistake, string>
}
