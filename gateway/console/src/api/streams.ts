import type { RepairResult, VerifyReport } from '@workspace-wallet/contract'
import { CallFailed, type Client } from './client.ts'

export type OnProgress = (flows: number, totalFlows: number) => void

type ProgressEvent = { kind: 'progress'; flows: number; totalFlows: number }
type Result<Event> = Exclude<Event, ProgressEvent>

/** The result of a call that reports its progress. @throws CallFailed, also if the answer ends before its result */
async function resultOf<Event extends { kind: string }>(
  stream: AsyncIterable<Event>,
  onProgress: OnProgress,
): Promise<Result<Event>> {
  for await (const event of stream) {
    const { flows, totalFlows } = event as unknown as ProgressEvent
    if (event.kind === 'progress') onProgress(flows, totalFlows)
    else return event as Result<Event>
  }
  throw new CallFailed(new Error('the answer ended before its result'), '')
}

export async function verify(
  client: Client,
  workspaceId: string | undefined,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<VerifyReport> {
  const input = workspaceId === undefined ? {} : { workspaceId }
  return (await resultOf(await client.query('ledger.verify', input, signal), onProgress)).report
}

export async function reopen(
  client: Client,
  input: { workspaceId: string; force: boolean; reason?: string },
  onProgress: OnProgress,
): Promise<{ reopened: boolean; report: VerifyReport }> {
  return await resultOf(await client.mutate('ledger.reopen', input), onProgress)
}

export async function repair(
  client: Client,
  input: { workspaceId: string; dryRun: boolean; reason?: string },
  onProgress: OnProgress,
): Promise<RepairResult> {
  return await resultOf(await client.mutate('ledger.repair', input), onProgress)
}

/** Takes a checkpoint. Returns the file: one part in JSON on each line. */
export async function takeCheckpoint(client: Client, workspaceId: string | undefined): Promise<Blob> {
  const lines: string[] = []
  const input = workspaceId === undefined ? {} : { workspaceId }
  for await (const part of await client.query('ledger.checkpoint', input)) {
    lines.push(`${JSON.stringify(part)}\n`)
    if (part.last) return new Blob(lines, { type: 'application/jsonl' })
  }
  throw new CallFailed(new Error('the answer ended before its last part'), '')
}
