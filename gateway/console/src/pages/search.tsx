import { Alert } from '@mantine/core'
import { useSearch } from '@tanstack/react-router'
import type { FindResult, FoundObject } from '@workspace-wallet/contract'
import { z } from 'zod'
import { type Column, DataTable, Written } from '../components/data-table.tsx'
import { Id, shortId } from '../components/id.tsx'
import { KeyLink, PageLink, TransferLink, WalletLink, WorkspaceLink } from '../components/links.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Empty, Page } from '../components/page.tsx'
import { optionalText } from '../components/record-list.tsx'
import { useText } from '../preferences/preferences.tsx'
import { useRead } from '../session/calls.ts'

// A text that looks like a number in an address is one.
export const searchSearch = z.object({ text: z.union([optionalText, z.number().transform(String)]) })

/** What a text names: an ID of any kind, a bizId, a reference, a request ID or a user ID. */
export function SearchPage() {
  const { search } = useText()
  const { text } = useSearch({ from: '/search' })
  return (
    <Page title={search.title} about={text ?? search.prompt}>
      {text ? <Results text={text} /> : null}
    </Page>
  )
}

function Results({ text }: { text: string }) {
  const { search, fields } = useText()
  const result = useRead('search.find', { text })
  const columns: Column<FoundObject>[] = [
    { label: fields.type, cell: ({ kind }) => search.kinds[kind] },
    { label: fields.id, cell: found => <FoundLink found={found} /> },
    { label: search.what, cell: ({ summary }) => <Written>{summary}</Written> },
    { label: search.by, cell: ({ by }) => by },
    {
      label: fields.workspace,
      cell: ({ workspaceId }) => workspaceId !== null && <WorkspaceLink workspaceId={workspaceId} />,
    },
  ]
  return (
    <Loaded result={result}>
      {found => (
        <>
          <DataTable
            label={search.results}
            rows={found.found}
            columns={columns}
            rowKey={({ kind, id, by }) => `${kind} ${id} ${by}`}
            empty={<Empty>{search.none(text)}</Empty>}
          />
          <Incomplete result={found} />
        </>
      )}
    </Loaded>
  )
}

function FoundLink({ found: { kind, id, workspaceId } }: { found: FoundObject }) {
  if (kind === 'operator') return <PageLink to="/operators">{id}</PageLink>
  if (workspaceId === null || kind === 'audit') return <Id value={id} />
  const search = { workspace: workspaceId }
  switch (kind) {
    case 'workspace':
      return <WorkspaceLink workspaceId={id} />
    case 'wallet':
      return <WalletLink workspaceId={workspaceId} walletId={id} />
    case 'transfer':
      return <TransferLink workspaceId={workspaceId} transferId={id} />
    case 'apiKey':
      return <KeyLink workspaceId={workspaceId} apiKey={id} />
    case 'member':
      return (
        <PageLink to="/workspaces/$workspaceId" params={{ workspaceId }} search={search}>
          {id}
        </PageLink>
      )
    case 'hold':
      return (
        <PageLink to="/holds" search={{ ...search, hold: id }}>
          {shortId(id)}
        </PageLink>
      )
    case 'webhook':
      return (
        <PageLink to="/webhooks" search={search}>
          {shortId(id)}
        </PageLink>
      )
    case 'event':
      return (
        <PageLink to="/events" search={search}>
          {shortId(id)}
        </PageLink>
      )
  }
}

/** What took too long to search. */
function Incomplete({ result }: { result: FindResult }) {
  const { search } = useText()
  const names = result.searched
    .filter(({ isComplete }) => !isComplete)
    .map(({ kind, by }) => `${search.kinds[kind]} (${by})`)
  if (names.length === 0) return null
  return (
    <Alert color="orange" variant="outline">
      {search.incomplete(names.join(', '))}
    </Alert>
  )
}
