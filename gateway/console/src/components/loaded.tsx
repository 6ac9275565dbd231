import { Skeleton, Stack } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useText } from '../preferences/preferences.tsx'
import { FailureAlert } from './failure.tsx'

/** What was read: a placeholder until it arrives, and the failure above what was read before. */
export function Loaded<Data>({
  result,
  children,
}: {
  result: UseQueryResult<Data>
  children: (data: Data) => ReactNode
}) {
  const { states } = useText()
  const { data, error, isPlaceholderData } = result
  return (
    <Stack gap="md" aria-busy={result.isFetching}>
      {error && <FailureAlert error={error} onRetry={() => void result.refetch()} />}
      {data === undefined && !error && (
        <Stack gap="xs" role="status" aria-label={states.loading}>
          {[1, 2, 3].map(row => (
            <Skeleton key={row} height={28} />
          ))}
        </Stack>
      )}
      {data !== undefined && !(error && isPlaceholderData) && children(data)}
    </Stack>
  )
}
