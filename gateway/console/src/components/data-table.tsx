import { Table, Text, UnstyledButton } from '@mantine/core'
import type { ReactNode } from 'react'
import { SortIcon } from './icons.tsx'

export type Column<Row> = {
  label: string
  cell: (row: Row) => ReactNode
  isNumeric?: boolean
  /** The field of the server that the heading sorts by. */
  sort?: string
}

export type Sort = { field: string; direction: 'asc' | 'desc' }

type DataTableProps<Row> = {
  label: string
  rows: readonly Row[]
  columns: readonly Column<Row>[]
  rowKey: (row: Row) => string
  sort?: Sort | undefined
  onSort?: (sort: Sort) => void
  empty: ReactNode
}

/**
 * A table of records. On a narrow screen, each record becomes a card: roles keep it a table for screen readers.
 */
export function DataTable<Row>({ label, rows, columns, rowKey, sort, onSort, empty }: DataTableProps<Row>) {
  if (rows.length === 0) return <>{empty}</>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what is wider than the window
    <section className="table-scroll" aria-label={label} tabIndex={0}>
      <Table className="data-table" role="table" aria-label={label} verticalSpacing="xs" highlightOnHover>
        <Table.Thead role="rowgroup">
          <Table.Tr role="row">
            {columns.map(column => (
              <Heading key={column.label} column={column} sort={sort} onSort={onSort} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody role="rowgroup">
          {rows.map(row => (
            <Table.Tr key={rowKey(row)} role="row">
              {columns.map(({ label: name, cell, isNumeric }) => (
                <Table.Td key={name} role="cell" data-label={name} className={isNumeric ? 'numeric' : undefined}>
                  {cell(row)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  )
}

type HeadingProps<Row> = {
  column: Column<Row>
  sort: Sort | undefined
  onSort: ((sort: Sort) => void) | undefined
}

function Heading<Row>({ column: { label, isNumeric, sort: field }, sort, onSort }: HeadingProps<Row>) {
  const direction = field !== undefined && sort?.field === field ? sort.direction : undefined
  const ariaSort = direction && (direction === 'asc' ? 'ascending' : 'descending')
  const toggle = () => onSort?.({ field: field!, direction: direction === 'desc' ? 'asc' : 'desc' })
  return (
    <Table.Th role="columnheader" aria-sort={ariaSort} className={isNumeric ? 'numeric' : undefined}>
      {field && onSort ? (
        <UnstyledButton onClick={toggle} className="sort">
          {label} <SortIcon direction={direction} />
        </UnstyledButton>
      ) : (
        label
      )}
    </Table.Th>
  )
}

/** Text that a client wrote: it may be long, in any direction, and look like markup. */
export function Written({ children }: { children: string | null }) {
  if (children === null || children === '')
    return (
      <Text span c="dimmed" inherit aria-hidden="true">
        –
      </Text>
    )
  return <bdi className="wrap">{children}</bdi>
}
