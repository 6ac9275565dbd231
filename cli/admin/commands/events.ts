import { setTimeout } from 'node:timers/promises'
import { type Event, type EventPage, eventsOf, maxEvents } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { streamCommand } from '../command.ts'
import { onWorkspace } from '../on-workspace.ts'
import { isUnavailable } from '../sentences.ts'
import { parsePosition } from '../values.ts'
import { workspace } from './id-flags.ts'

const pollMs = 1_000
const defaultCount = 10

export const eventCommands = [
  streamCommand({
    noun: 'event',
    verb: 'tail',
    help: 'print the events of a workspace in order: transfers, holds, and changes of wallets',
    flags: {
      workspace,
      after: {
        value: 'POSITION',
        help: `begin after this position; 0 prints all events (default: the last ${defaultCount} events)`,
        parse: parsePosition,
      },
      follow: { help: 'wait for new events until you press Ctrl-C, also while core restarts' },
    },
    examples: ['--workspace wsp_…', '--workspace wsp_… --after 0 --json', '--workspace wsp_… --follow'],
    heading: rowOf('POSITION', 'TIME', 'TYPE', 'WHAT'),
    run: (core, { workspace: workspaceId, ...range }, signal) => tail(core, workspaceId, range, signal),
    print: event => rowOf(String(event.position), event.timestamp, event.type, describe(event)),
  }),
]

/**
 * Yields the events after a position. With `follow`, it continues until `signal` is aborted.
 *
 * @throws Error if the event at the last position is another one than before, because the database was restored
 */
async function* tail(
  core: CoreClient,
  workspaceId: string,
  { after, follow }: { after: number | undefined; follow: boolean },
  signal: AbortSignal,
): AsyncGenerator<Event, void> {
  const read = (position: number | 'head') =>
    core.events.read.query({ ...onWorkspace(workspaceId), after: position, size: maxEvents }, { signal })
  try {
    let page = await read(after ?? Math.max(0, (await read('head')).last - defaultCount))
    for (;;) {
      yield* eventsOf(page)
      const { last, lastEventId, more } = page
      if (!more && !follow) return
      if (!more) await setTimeout(pollMs, undefined, { signal })
      page = follow ? await readWhenAvailable(() => read(last), signal) : await read(last)
      if (page.afterEventId !== lastEventId)
        throw new Error(
          `The event at position ${last} is no longer ${lastEventId}, because an earlier copy of the database was restored: run the command again.`,
        )
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Retries while core is unavailable, and says so once. */
async function readWhenAvailable(read: () => Promise<EventPage>, signal: AbortSignal): Promise<EventPage> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await read()
    } catch (error) {
      if (!isUnavailable(error) || signal.aborted) throw error
      if (attempt === 0) console.error('Core is unavailable. Waiting for it.')
      await setTimeout(pollMs, undefined, { signal })
    }
  }
}

function rowOf(position: string, time: string, type: string, what: string): string {
  return `${position.padEnd(8)}  ${time.padEnd(24)}  ${type.padEnd(18)}  ${what}`
}

function describe(event: Event): string {
  const { data } = event
  if ('transfer' in data) return describeTransfer(data.transfer)
  if ('funding' in data) {
    const { amount, currency, type, walletId, bizId, holdId } = data.funding
    const preposition = type === 'DEPOSIT' ? 'into' : 'from'
    return `${amount} ${currency} ${preposition} ${walletId}, ${bizId}${holdId === null ? '' : `, on hold ${holdId}`}`
  }
  if ('hold' in data) {
    const { holdId, amount, currency, walletId, expiresAt, status, bizId } = data.hold
    const until = status === 'OPEN' ? `, until ${expiresAt}` : ''
    return `${holdId}: ${amount} ${currency} of ${walletId}, ${bizId}${until}`
  }
  return `${data.walletId} ${data.status} (${data.currency}) by ${data.by}`
}

type TransferData = Extract<Event['data'], { transfer: unknown }>['transfer']

function describeTransfer(transfer: TransferData): string {
  const { amount, currency, sourceWalletId, targetWalletId, bizId, reversesTransferId, holdId, batchId } = transfer
  return [
    `${amount} ${currency} from ${sourceWalletId} to ${targetWalletId}`,
    bizId,
    ...(reversesTransferId === null ? [] : [`reverses ${reversesTransferId}`]),
    ...(holdId === null ? [] : [`on hold ${holdId}`]),
    ...(batchId === null ? [] : [`in batch ${batchId}`]),
  ].join(', ')
}
