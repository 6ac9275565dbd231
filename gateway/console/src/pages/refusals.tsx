import { errorTable, isErrorCode, type Refusal, refusalSteps } from '@workspace-wallet/contract'
import { z } from 'zod'
import { CursorPager } from '../components/cursor-pager.tsx'
import { type Column, DataTable, Written } from '../components/data-table.tsx'
import { Facts } from '../components/facts.tsx'
import { Filters } from '../components/filters.tsx'
import { Id, shortId } from '../components/id.tsx'
import { PageLink } from '../components/links.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Empty, Page } from '../components/page.tsx'
import { filterOf, optionalText, useList } from '../components/record-list.tsx'
import { Tag } from '../components/status.tsx'
import { Time } from '../components/time.tsx'
import { useText } from '../preferences/preferences.tsx'
import { useRead } from '../session/calls.ts'

const optionalName = z.union([optionalText, z.number().transform(String)])
export const refusalsSearch = z.object({
  apiKey: optionalText,
  requestId: optionalText,
  code: optionalName,
  address: optionalText,
  before: optionalText,
})

const filters = ['apiKey', 'requestId', 'code', 'address'] as const
const pageSize = 50

/** Why calls of clients were refused. */
export function RefusalsPage() {
  const { navigation, refusals } = useText()
  const { search, change } = useList()
  const result = useRead('refusals.list', {
    ...filterOf(search, [...filters, 'before']),
    limit: pageSize,
  })
  const columns = useColumns()
  return (
    <Page title={navigation.refusals} about={refusals.about}>
      <Filters
        key={JSON.stringify(search)}
        values={search as Record<string, string | undefined>}
        onChange={values => change({ ...values, before: undefined })}
        fields={[
          { name: 'apiKey', label: refusals.key, placeholder: 'ak_…' },
          { name: 'requestId', label: refusals.requestId, placeholder: 'req_…' },
          { name: 'code', label: refusals.code, options: Object.keys(errorTable).map(code => [code, code]) },
          { name: 'address', label: refusals.address },
        ]}
      />
      <Loaded result={result}>
        {({ refusals: found, next }) => (
          <>
            <DataTable
              label={navigation.refusals}
              rows={found}
              columns={columns}
              rowKey={({ id }) => String(id)}
              empty={<Empty>{refusals.empty}</Empty>}
            />
            <CursorPager next={next} name="before" />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function useColumns(): Column<Refusal>[] {
  const { refusals, fields } = useText()
  return [
    { label: fields.time, cell: ({ at }) => <Time at={at} /> },
    {
      label: refusals.call,
      cell: ({ method, route }) => <Written>{`${method} ${route}`}</Written>,
    },
    {
      label: refusals.code,
      cell: ({ code }) => `${code}${isErrorCode(code) ? ` ${errorTable[code].message}` : ''}`,
    },
    { label: refusals.why, cell: refusal => <Account refusal={refusal} /> },
    {
      label: refusals.key,
      cell: ({ apiKey }) =>
        apiKey !== null && (
          <Id value={apiKey}>
            <PageLink to="/keys/$apiKey" params={{ apiKey }}>
              {shortId(apiKey)}
            </PageLink>
          </Id>
        ),
    },
  ]
}

/** What the gateway checked, step by step, up to the one that refused the call, and where the call came from. */
function Account({ refusal }: { refusal: Refusal }) {
  const { step: refusedBy, detail, isSigned, address, requestId } = refusal
  const { refusals } = useText()
  const reached = (refusalSteps as readonly string[]).indexOf(refusedBy)
  return (
    <details>
      <summary>
        <Written>{detail}</Written>
      </summary>
      <ol className="steps">
        {refusalSteps.map((step, at) => (
          <li key={step}>
            {refusals.steps[step]}{' '}
            {reached < 0 ? null : at < reached ? (
              <Tag tone="good">{refusals.passed}</Tag>
            ) : at === reached ? (
              <Tag tone="bad">{refusals.refused}</Tag>
            ) : (
              <Tag tone="ended">{refusals.notReached}</Tag>
            )}
          </li>
        ))}
      </ol>
      <p>{isSigned ? refusals.signed : refusals.unsigned}</p>
      <Facts
        facts={[
          [refusals.address, address],
          [refusals.requestId, <Id key="request" value={requestId} isFull />],
        ]}
      />
    </details>
  )
}
