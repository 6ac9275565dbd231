import { keepPreviousData, type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query'
import type { CallInput, CallOutput, Client, ProcedurePath } from '../api/client.ts'
import { useSession } from './session.tsx'

type ReadOptions = { enabled?: boolean; refreshMs?: number }

/** Reads from core, and keeps the last answer while the next one is on its way. */
export function useRead<Path extends ProcedurePath>(
  path: Path,
  input: CallInput<Path>,
  { enabled = true, refreshMs }: ReadOptions = {},
): UseQueryResult<CallOutput<Path>> {
  const { client } = useSession()
  return useQuery({
    queryKey: [path, input],
    queryFn: ({ signal }) => client.query(path, input, signal),
    placeholderData: keepPreviousData,
    enabled,
    ...(refreshMs !== undefined && { refetchInterval: refreshMs }),
  }) as UseQueryResult<CallOutput<Path>>
}

/** Changes something. Afterwards, everything on the page is read again. */
export function useCommand(): Client['mutate'] {
  const { client } = useSession()
  const queries = useQueryClient()
  return async (path, input, signal) => {
    const result = await client.mutate(path, input, signal)
    await queries.invalidateQueries()
    return result
  }
}
