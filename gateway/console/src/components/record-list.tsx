import type { UseQueryResult } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { z } from 'zod'
import { type Column, DataTable, type Sort } from './data-table.tsx'
import { type FilterField, Filters } from './filters.tsx'
import { Loaded } from './loaded.tsx'
import { Pager } from './pager.tsx'

export const optionalText = z.string().optional().catch(undefined)
/** In UTC, as `TimeInput` writes it. */
export const optionalTime = z.iso.datetime().optional().catch(undefined)

/** The part of an address that says which page of a list is shown, in which order. */
export const listSearch = z.object({
  page: z.number().int().min(0).optional().catch(undefined),
  sort: z
    .string()
    .regex(/^[a-zA-Z]+,(asc|desc)$/)
    .optional()
    .catch(undefined),
})

type Search = Record<string, string | number | undefined>

/** The page and order of a list, from the address. */
export function useList<Field extends string>() {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const [field, direction] = String(search.sort ?? '').split(',') as [Field | '', Sort['direction']]
  const sort = field === '' ? undefined : { field, direction }
  const change = (changed: Search) =>
    void navigate({ to: '.', search: ((before: Search) => ({ ...before, ...changed })) as never })
  return {
    search,
    sort,
    change,
    /** What the input of a list needs. */
    request: { page: Number(search.page ?? 0), sort: sort ? [sort] : [] },
  }
}

/** The fields of a filter that are set. */
export function filterOf(search: Search, names: readonly string[]): Record<string, string | Date> {
  const set = names.flatMap(name => {
    const value = search[name]
    if (typeof value !== 'string' || value === '') return []
    return [[name, /^created(From|To)$/.test(name) ? new Date(value) : value] as const]
  })
  return Object.fromEntries(set)
}

type RecordListProps<Row> = {
  label: string
  fields: readonly FilterField[]
  columns: (rows: readonly Row[]) => readonly Column<Row>[]
  rowKey: (row: Row) => string
  result: UseQueryResult<{ content: Row[]; page: Parameters<typeof Pager>[0]['page'] }>
  empty: ReactNode
}

/** A list with filters, order and pages, which are all part of the address. */
export function RecordList<Row>({ label, fields, columns, rowKey, result, empty }: RecordListProps<Row>) {
  const { search, sort, change } = useList()
  return (
    <>
      <Filters
        key={fields.map(({ name }) => search[name] ?? '').join('\n')}
        fields={fields}
        values={search as Record<string, string | undefined>}
        onChange={values => change({ ...values, page: undefined })}
      />
      <Loaded result={result}>
        {({ content, page }) => (
          <>
            <DataTable
              label={label}
              rows={content}
              columns={columns(content)}
              rowKey={rowKey}
              sort={sort}
              onSort={({ field, direction }) => change({ sort: `${field},${direction}`, page: undefined })}
              empty={empty}
            />
            <Pager page={page} onPage={number => change({ page: number === 0 ? undefined : number })} />
          </>
        )}
      </Loaded>
    </>
  )
}
