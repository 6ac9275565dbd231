import {
  createTRPCClient,
  getUntypedClient,
  httpBatchStreamLink,
  httpLink,
  isTRPCClientError,
  splitLink,
} from '@trpc/client'
import type { inferRouterInputs } from '@trpc/server'
import { serialization } from '@workspace-wallet/contract'
import type { AppRouter, ProcedureOutput, ProcedurePath } from '@workspace-wallet/core-client'
import { uuidv7 } from 'uuidv7'

type Inputs = inferRouterInputs<AppRouter>
type InputAt<Path extends ProcedurePath> = Path extends `${infer Name extends keyof Inputs & string}.${infer Own}`
  ? Inputs[Name][Own & keyof Inputs[Name]]
  : never
type WithoutCaller<Input> = Input extends unknown ? Omit<Input, 'caller'> : never

/** The input of a procedure without `caller`, which the client adds. */
export type CallInput<Path extends ProcedurePath> =
  InputAt<Path> extends object ? WithoutCaller<InputAt<Path>> : Record<never, never>
export type CallOutput<Path extends ProcedurePath> = ProcedureOutput<Path>
export type { ProcedurePath }

/** Calls core through the gateway that serves this page. */
export type Client = {
  query<Path extends ProcedurePath>(path: Path, input: CallInput<Path>, signal?: AbortSignal): Promise<CallOutput<Path>>
  mutate<Path extends ProcedurePath>(
    path: Path,
    input: CallInput<Path>,
    signal?: AbortSignal,
  ): Promise<CallOutput<Path>>
}

/** A call that failed: the error of tRPC, and the ID that the logs of the service have of the call. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed'
  readonly requestId: string

  constructor(cause: unknown, requestId: string) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.requestId = requestId
  }
}

/** These answer in several parts, for minutes. */
const streamed = new Set<string>([
  'ledger.checkpoint',
  'ledger.reopen',
  'ledger.repair',
  'ledger.verify',
] satisfies ProcedurePath[])

/**
 * @param token a service token, which goes into the header of each call
 * @param onUnknownToken called when core does not know the token
 */
export function createClient(token: string, onUnknownToken: () => void = () => {}): Client {
  const options = { url: '/trpc', transformer: serialization, headers: { authorization: `Bearer ${token}` } }
  const trpc = getUntypedClient(
    createTRPCClient<AppRouter>({
      links: [
        splitLink({
          condition: ({ path }) => streamed.has(path),
          true: httpBatchStreamLink({ ...options, maxItems: 1 }),
          false: httpLink(options),
        }),
      ],
    }),
  )

  async function call(
    type: 'query' | 'mutation',
    path: string,
    input: object,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const requestId = `console-${uuidv7()}`
    const withCaller = { ...input, caller: { requestId } }
    const options = signal ? { signal } : {}
    try {
      return await (type === 'query' ? trpc.query(path, withCaller, options) : trpc.mutation(path, withCaller, options))
    } catch (error) {
      if (isTRPCClientError<AppRouter>(error) && error.data?.code === 'UNAUTHORIZED') onUnknownToken()
      throw new CallFailed(error, requestId)
    }
  }

  return {
    query: (path, input, signal) => call('query', path, input, signal) as never,
    mutate: (path, input, signal) => call('mutation', path, input, signal) as never,
  }
}
