import { TRPCClientError } from '@trpc/client'
import type { inferRouterInputs } from '@trpc/server'
import type {
  ReopenEvent,
  RepairEvent,
  RepairResult,
  UploadedCheckpoint,
  VerifyEvent,
  VerifyReport,
} from '@workspace-wallet/contract'
import type { AppRouter } from '../../../services/core/src/routers/app-router.ts'
import { readCheckpoint } from './checkpoint.ts'
import { streamEnded } from './request-failures.ts'

type Inputs = inferRouterInputs<AppRouter>['ledger']
type Options = { signal?: AbortSignal }

/** The calls that these functions make: of `CoreClient`, or of a client in a browser. */
export type LedgerCalls = {
  ledger: {
    verify: { query: (input: Inputs['verify'], options?: Options) => Promise<AsyncIterable<VerifyEvent>> }
    reopen: { mutate: (input: Inputs['reopen']) => Promise<AsyncIterable<ReopenEvent>> }
    repair: { mutate: (input: Inputs['repair']) => Promise<AsyncIterable<RepairEvent>> }
    uploadCheckpoint: {
      mutate: (input: Inputs['uploadCheckpoint'], options?: Options) => Promise<{ genuine: boolean }>
    }
  }
}

export type VerifyProgress =
  | { kind: 'flows'; flows: number; totalFlows: number }
  /** Number of wallets of the checkpoint that were uploaded. */
  | { kind: 'checkpoint'; wallets: number }

export type VerifyOptions = {
  /** Verify this workspace only. */
  workspaceId?: string | undefined
  /** The content of a checkpoint file, in lines or in any chunks: the ledger must continue from it. */
  checkpoint?: AsyncIterable<string> | Iterable<string> | undefined
  onProgress?: ((progress: VerifyProgress) => void) | undefined
  signal?: AbortSignal | undefined
}

/**
 * Verifies the ledger. With a checkpoint, it also verifies that each chain still contains the MAC in the checkpoint.
 *
 * The checkpoint is uploaded in parts before the verification, because a million wallets do not fit in one request. Any core
 * can take any part.
 *
 * @throws TRPCClientError core's error; its cause is a CoreUnreachable if the stream ended before its result
 */
export async function verifyLedger(
  core: LedgerCalls,
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
  throw TRPCClientError.from(streamEnded())
}

/**
 * Verifies a halted workspace, and reopens it if it is sound or `force` is set.
 *
 * @throws TRPCClientError core's error, for example if the workspace is not halted; its cause is a CoreUnreachable if the
 *   stream ended before its result
 */
export async function reopenLedger(
  core: LedgerCalls,
  input: { workspaceId: string; force: boolean; reason?: string | undefined },
  onProgress?: (progress: VerifyProgress) => void,
): Promise<{ reopened: boolean; report: VerifyReport }> {
  for await (const event of await core.ledger.reopen.mutate(input)) {
    if (event.kind === 'result') return { reopened: event.reopened, report: event.report }
    onProgress?.({ kind: 'flows', flows: event.flows, totalFlows: event.totalFlows })
  }
  throw TRPCClientError.from(streamEnded())
}

/**
 * Rebuilds the wallet rows and counters of a halted workspace from its flows, holds and journal, and reopens it if it is sound afterwards.
 * `dryRun` returns the changes without making them. Nothing is changed if flows are damaged.
 *
 * @throws TRPCClientError core's error, for example if the workspace is not halted; its cause is a CoreUnreachable if the
 *   stream ended before its result
 */
export async function repairLedger(
  core: LedgerCalls,
  input: { workspaceId: string; dryRun: boolean; reason?: string | undefined },
  onProgress?: (progress: VerifyProgress) => void,
): Promise<RepairResult> {
  for await (const event of await core.ledger.repair.mutate(input)) {
    if (event.kind === 'result') {
      const { kind: _, ...result } = event
      return result
    }
    onProgress?.({ kind: 'flows', flows: event.flows, totalFlows: event.totalFlows })
  }
  throw TRPCClientError.from(streamEnded())
}

/** Uploads a checkpoint. Returns a fault if the file is not a complete checkpoint of what is verified. */
async function uploadCheckpoint(
  core: LedgerCalls,
  lines: AsyncIterable<string> | Iterable<string>,
  workspaceId: string | undefined,
  onProgress: VerifyOptions['onProgress'],
  options: Options,
): Promise<UploadedCheckpoint | { fault: string }> {
  const uploadId = crypto.randomUUID()
  let checkpointId = ''
  let places = 1
  let wallets = 0
  for await (const part of readCheckpoint(lines)) {
    if ('fault' in part) return part
    const { genuine } = await core.ledger.uploadCheckpoint.mutate({ uploadId, part }, options)
    if (!genuine) return { fault: `part ${part.part} was changed, or was not signed with the chain key of this ledger` }
    if (workspaceId !== undefined && part.workspaceId !== workspaceId)
      return { fault: `it covers ${part.workspaceId ?? 'all workspaces'}, but only ${workspaceId} was verified` }
    checkpointId = part.checkpointId
    places = part.place + 1
    wallets += part.chains.length
    onProgress?.({ kind: 'checkpoint', wallets })
  }
  return { uploadId, checkpointId, places }
}

function withFault(report: VerifyReport, fault: string): VerifyReport {
  return {
    ...report,
    ok: false,
    checkpoint: { checkpointId: null, takenAt: null, workspaceId: null, wallets: 0, fault },
  }
}
