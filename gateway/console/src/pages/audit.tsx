import { Anchor, Table } from '@mantine/core'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { type AuditEntry, auditActions } from '@workspace-wallet/contract'
import { z } from 'zod'
import { CursorPager } from '../components/cursor-pager.tsx'
import { type Column, DataTable, Written } from '../components/data-table.tsx'
import { Filters } from '../components/filters.tsx'
import { Id, shortId } from '../components/id.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Empty, Page } from '../components/page.tsx'
import { optionalText, optionalTime } from '../components/record-list.tsx'
import { Tag } from '../components/status.tsx'
import { Time } from '../components/time.tsx'
import { useText } from '../preferences/preferences.tsx'
import { useRead } from '../session/calls.ts'

export const auditSearch = z.object({
  actor: optionalText,
  action: optionalText,
  target: optionalText,
  requestId: optionalText,
  from: optionalTime,
  to: optionalTime,
  before: optionalText,
})

const pageSize = 50

/** Who did what, when, and what it changed. */
export function AuditPage() {
  const text = useText()
  const search = useSearch({ from: '/audit' })
  const navigate = useNavigate({ from: '/audit' })
  const { workspace: workspaceId, from, to, ...rest } = search
  const filter = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
  const result = useRead('audit.list', {
    ...filter,
    ...(workspaceId !== undefined && { workspaceId }),
    ...(from !== undefined && { from: new Date(from) }),
    ...(to !== undefined && { to: new Date(to) }),
    limit: pageSize,
  })
  const { audit } = text
  const columns = useColumns(workspaceId === undefined)
  return (
    <Page title={text.navigation.audit} about={audit.about}>
      <Filters
        key={JSON.stringify(search)}
        values={search as Record<string, string | undefined>}
        onChange={values => void navigate({ search: { ...values, before: undefined } as never })}
        fields={[
          { name: 'workspace', label: text.workspaces.workspace, placeholder: 'wsp_…' },
          { name: 'actor', label: audit.actor, placeholder: 'admin:…' },
          { name: 'action', label: audit.action, options: auditActions.map(action => [action, action]) },
          { name: 'target', label: audit.target },
          { name: 'requestId', label: text.refusals.requestId },
          { name: 'from', label: text.filters.from, type: 'time' },
          { name: 'to', label: text.filters.to, type: 'time' },
        ]}
      />
      <Loaded result={result}>
        {({ entries, next }) => (
          <>
            <DataTable
              label={text.navigation.audit}
              rows={entries}
              columns={columns}
              rowKey={({ id, at }) => `${at.getTime()} ${id}`}
              empty={<Empty>{audit.empty}</Empty>}
            />
            <CursorPager next={next} name="before" />
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** @param hasWorkspace whether the workspace of each entry is shown: if one is chosen, it is that of all */
function useColumns(hasWorkspace: boolean): Column<AuditEntry>[] {
  const { audit, fields, keys, workspaces, actions, refusals } = useText()
  const workspace: Column<AuditEntry> = {
    label: workspaces.workspace,
    cell: ({ workspaceId }) =>
      workspaceId && (
        <Id value={workspaceId}>
          <Anchor component={Link} to="/audit" search={{ workspace: workspaceId } as never}>
            {shortId(workspaceId)}
          </Anchor>
        </Id>
      ),
  }
  return [
    { label: fields.time, cell: ({ at }) => <Time at={at} /> },
    { label: audit.actor, cell: ({ actor }) => <Written>{actor}</Written> },
    { label: audit.action, cell: ({ action }) => action },
    { label: audit.target, cell: ({ target }) => <Id value={target} /> },
    {
      label: audit.changes,
      cell: entry => (entry.isGenuine ? <Changes {...entry} /> : <Tag tone="bad">{keys.modified}</Tag>),
    },
    { label: actions.reason, cell: ({ reason }) => <Written>{reason}</Written> },
    ...(hasWorkspace ? [workspace] : []),
    { label: refusals.requestId, cell: ({ requestId }) => requestId !== null && <Id value={requestId} /> },
  ]
}

/** What an action changed: each field before and after. */
function Changes({ before, after }: Pick<AuditEntry, 'before' | 'after'>) {
  const { audit } = useText()
  const [old, now] = [fieldsOf(before), fieldsOf(after)]
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])]
  if (names.length === 0) return null
  return (
    <details>
      <summary>{audit.changed(names.length)}</summary>
      <Table className="changes" withColumnBorders>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{audit.field}</Table.Th>
            <Table.Th>{audit.before}</Table.Th>
            <Table.Th>{audit.after}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {names.map(name => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name}</Table.Th>
              <Table.Td>
                <Written>{textOf(old[name])}</Written>
              </Table.Td>
              <Table.Td>
                <Written>{textOf(now[name])}</Written>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </details>
  )
}

function fieldsOf(value: unknown): Record<string, unknown> {
  if (value === null || value === undefined) return {}
  return typeof value === 'object' ? (value as Record<string, unknown>) : { value }
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}
