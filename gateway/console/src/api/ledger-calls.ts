import type { CheckpointCalls } from '@workspace-wallet/core-client/checkpoint'
import type { LedgerCalls } from '@workspace-wallet/core-client/ledger'
import type { Client } from './client.ts'

/** The calls that are answered in several parts, for the functions of core's client that read them. */
export function ledgerCalls(client: Client): LedgerCalls & CheckpointCalls {
  return {
    ledger: {
      checkpoint: { query: input => client.query('ledger.checkpoint', input) },
      reopen: { mutate: input => client.mutate('ledger.reopen', input) },
      repair: { mutate: input => client.mutate('ledger.repair', input) },
      uploadCheckpoint: {
        mutate: (input, options) => client.mutate('ledger.uploadCheckpoint', input, options?.signal),
      },
      verify: { query: (input, options) => client.query('ledger.verify', input, options?.signal) },
    },
  }
}

/** The text of a file, piece by piece. Not every browser can iterate over a stream. */
export async function* textOf(file: Blob): AsyncGenerator<string> {
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}
