import { TRPCClientError } from '@trpc/client'
import type { RepairResult, UploadedCheckpoint, VerifyReport } from '@workspace-wallet/contract'
import { readCheckpoint } from './checkpoint.ts'
import type { CoreClient } from './core-client.ts'
import { CoreUnreachable } from './errors.ts'

export type VerifyProgress =
  | { kind: 'flows'; flows: number; totalFlows: number }
  /** Wallets of the checkpoint that were uploaded. */
  | { kind: 'checkpoint'; wallets: number }

export type VerifyOptions = {
  /** Of this workspace alone. */
  workspaceId?: string | undefined
  /** The lines of a checkpoint's file, or any pieces of it: the ledger must continue from it. */
  checkpoint?: AsyncIterable<string> | Iterable<string> | undefined
  onProgress?: ((progress: VerifyProgress) => void) | undefined
  signal?: AbortSignal | undefined
}

/**
 * Verifies the ledger, and that it still is what a checkpoint says it was: each chain, as it is replayed, passes through the
 * MAC in the checkpoint.
 *
 * The checkpoint goes to core part by part, before the verification: a million wallets fit in no request, and any core may
 * take any part.
 *
 * @throws TRPCClientError core's refusal; its cause is a CoreUnreachable when the answer ended before its result
 */
export async function verifyLedger(
  core: CoreClient,
  { workspaceId, checkpoint: lines, onProgress, signal }: VerifyOptions = {},
): Promise<VerifyReport> {
  const options = { ...(signal && { signal }) }
  const upload = lines && (await uploadCheckpoint(core, lines, workspaceId, onProgress, options))
  const fault = upload && 'fault' in upload ? upload.fault : null
  const checkpoint = upload && 'uploadId' in upload ? upload : undefined
  for await (const event of await core.ledger.verify.query({ workspaceId, checkpoint }, options)) {
    if (event.kind === 'result') return fault === null ? event.report : withFault(event.report, fault)
    onProgress?.({ kind: 'flows', flows: event.flows, totalFlows: event.totalFlows })
  }
  throw TRPCClientError.from(new CoreUnreachable(true))
}

/**
 * Verifies a halted workspace, and opens it again when it is sound, or when that is forced.
 *
 * @throws TRPCClientError core's refusal, of a workspace that is not halted for one; its cause is a CoreUnreachable
 *   when the answer ended before its result
 */
export async function reopenLedger(
  core: CoreClient,
  input: { workspaceId: string; force: boolean },
  onProgress?: (progress: VerifyProgress) => void,
): Promise<{ reopened: boolean; report: VerifyReport }> {
  for await (const event of await core.ledger.reopen.mutate(input)) {
    if (event.kind === 'result') return { reopened: event.reopened, report: event.report }
    onProgress?.({ kind: 'flows', flows: event.flows, totalFlows: event.totalFlows })
  }
  throw TRPCClientError.from(new CoreUnreachable(true))
}

/**
 * Makes the rows of a halted workspace's wallets, and its counters, from its entries, and opens it again when it is
 * sound then. `dryRun` shows what would be changed. Nothing is changed when entries are damaged.
 *
 * @throws TRPCClientError core's refusal, of a workspace that is not halted for one; its cause is a CoreUnreachable
 *   when the answer ended before its result
 */
export async function repairLedger(
  core: CoreClient,
  input: { workspaceId: string; dryRun: boolean },
  onProgress?: (progress: VerifyProgress) => void,
): Promise<RepairResult> {
  for await (const event of await core.ledger.repair.mutate(input)) {
    if (event.kind === 'result') {
      const { kind: _, ...result } = event
      return result
    }
    onProgress?.({ kind: 'flows', flows: event.flows, totalFlows: event.totalFlows })
  }
  throw TRPCClientError.from(new CoreUnreachable(true))
}

/** A file that is no whole checkpoint of what is verified is not compared: it says nothing about the ledger. */
async function uploadCheckpoint(
  core: CoreClient,
  lines: AsyncIterable<string> | Iterable<string>,
  workspaceId: string | undefined,
  onProgress: VerifyOptions['onProgress'],
  options: { signal?: AbortSignal },
): Promise<UploadedCheckpoint | { fault: string }> {
  const uploadId = crypto.randomUUID()
  let checkpointId = ''
  let wallets = 0
  for await (const part of readCheckpoint(lines)) {
    if ('fault' in part) return part
    const { genuine } = await core.ledger.uploadCheckpoint.mutate({ uploadId, part }, options)
    if (!genuine) return { fault: `part ${part.part} was changed, or was not signed under this ledger's chain key` }
    if (workspaceId !== undefined && part.workspaceId !== workspaceId)
      return { fault: `it is of ${part.workspaceId ?? 'all workspaces'}, and ${workspaceId} alone was verified` }
    checkpointId = part.checkpointId
    wallets += part.chains.length
    onProgress?.({ kind: 'checkpoint', wallets })
  }
  return { uploadId, checkpointId }
}

function withFault(report: VerifyReport, fault: string): VerifyReport {
  return {
    ...report,
    ok: false,
    checkpoint: { checkpointId: null, takenAt: null, workspaceId: null, wallets: 0, fault },
  }
}
