import { Badge, Button, Code, Group, NativeSelect, Text } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type Event, type EventType, eventsOf, eventTypes } from '@workspace-wallet/contract'
import { useEffect, useState } from 'react'
import { z } from 'zod'
import { DataTable } from '../components/data-table.tsx'
import { FailureAlert } from '../components/failure.tsx'
import { Id } from '../components/id.tsx'
import { Empty, Page } from '../components/page.tsx'
import { Time } from '../components/time.tsx'
import { InWorkspace } from '../components/workspace-picker.tsx'
import { useText } from '../preferences/preferences.tsx'
import { useSession } from '../session/session.tsx'

export const eventsSearch = z.object({
  type: z.enum(eventTypes).optional().catch(undefined),
  /** Begins after this position instead of with the newest events. */
  after: z.number().int().min(0).optional().catch(undefined),
})

/** How many events are shown at most: the newest. */
const shown = 200
const pageSize = 100
const pollMs = 1_000

/** The event log of a workspace, live. */
export function EventsPage() {
  const { navigation, events } = useText()
  const { type, after } = useSearch({ from: '/events' })
  return (
    <Page title={navigation.events} about={events.about}>
      <InWorkspace>
        {workspaceId => (
          <EventLog key={`${workspaceId} ${type} ${after}`} workspaceId={workspaceId} type={type} after={after} />
        )}
      </InWorkspace>
    </Page>
  )
}

type LogProps = { workspaceId: string; type: EventType | undefined; after: number | undefined }

function EventLog({ workspaceId, type, after }: LogProps) {
  const { events, fields, filters } = useText()
  const navigate = useNavigate({ from: '/events' })
  const [isFollowing, setFollowing] = useState(true)
  const { log, isRead, error, retry } = useEventLog({ workspaceId, type, after }, isFollowing)
  return (
    <>
      <Group align="flex-end" gap="sm">
        <NativeSelect
          label={fields.type}
          value={type ?? ''}
          onChange={event =>
            void navigate({
              search: { workspace: workspaceId, type: (event.currentTarget.value || undefined) as EventType },
            })
          }
          data={[{ value: '', label: filters.any }, ...eventTypes]}
        />
        <Button variant="default" onClick={() => setFollowing(!isFollowing)} aria-pressed={isFollowing}>
          {isFollowing ? events.pause : events.follow}
        </Button>
        <Badge variant="outline" tt="none" className={`tag tag-${isFollowing && !error ? 'good' : 'ended'}`}>
          {isFollowing && !error ? events.live : events.paused}
        </Badge>
      </Group>
      {error !== null && <FailureAlert error={error} onRetry={retry} />}
      <DataTable
        label={events.events}
        rows={log}
        rowKey={({ eventId }) => eventId}
        empty={isRead && <Empty>{events.empty}</Empty>}
        columns={[
          { label: events.position, cell: ({ position }) => position, isNumeric: true },
          { label: fields.time, cell: ({ timestamp }) => <Time at={timestamp} /> },
          { label: fields.type, cell: ({ type: each }) => each },
          { label: fields.id, cell: ({ eventId }) => <Id value={eventId} /> },
          { label: events.data, cell: event => <EventData event={event} /> },
        ]}
      />
      {log.length === shown && (
        <Text size="sm" c="dimmed">
          {events.newest(shown)}
        </Text>
      )}
    </>
  )
}

function EventData({ event }: { event: Event }) {
  const { events } = useText()
  return (
    <details>
      <summary>{events.showData}</summary>
      <Code block className="wrap">
        {JSON.stringify(event.data, null, 2)}
      </Code>
    </details>
  )
}

/** Reads the log from a position, or its newest part, and goes on as long as it is followed. The newest event is the first. */
function useEventLog({ workspaceId, type, after }: LogProps, isFollowing: boolean) {
  const { client } = useSession()
  const [state, setState] = useState<{ log: Event[]; cursor: number | null }>({ log: [], cursor: null })
  const [error, setError] = useState<unknown>(null)
  const [attempt, setAttempt] = useState(0)

  // biome-ignore lint/correctness/useExhaustiveDependencies: it goes on from the cursor of the state, and begins again on retry
  useEffect(() => {
    if (!isFollowing) return
    const stopped = new AbortController()
    const types = type === undefined ? [] : [type]
    async function follow(): Promise<void> {
      let cursor = state.cursor ?? after ?? (await newestPart())
      while (!stopped.signal.aborted) {
        const page = await client.query(
          'events.read',
          { workspaceId, after: cursor, size: pageSize, types },
          stopped.signal,
        )
        cursor = page.last
        const found = eventsOf(page).toReversed()
        setState(({ log }) => ({ log: [...found, ...log].slice(0, shown), cursor }))
        if (!page.more) await pause(pollMs, stopped.signal)
      }
    }
    async function newestPart(): Promise<number> {
      const { last } = await client.query('events.read', { workspaceId, after: 'head' }, stopped.signal)
      return Math.max(0, last - shown)
    }
    setError(null)
    follow().catch(failure => {
      if (!stopped.signal.aborted) setError(failure)
    })
    return () => stopped.abort()
  }, [client, workspaceId, type, after, isFollowing, attempt])

  return { log: state.log, isRead: state.cursor !== null, error, retry: () => setAttempt(attempt + 1) }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
