import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query'
import type { CallInput, CallOutput, ProcedurePath } from '../api/client.ts'
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
