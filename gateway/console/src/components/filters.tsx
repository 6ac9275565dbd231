import { Button, Group, NativeSelect, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useText } from '../preferences/preferences.tsx'
import { TimeInput } from './time-input.tsx'

export type FilterField = {
  name: string
  label: string
  placeholder?: string
  /** A time is kept as ISO 8601 in UTC, and entered in the zone of the browser. */
  type?: 'text' | 'time'
  /** The values to choose from, with their words. */
  options?: readonly (readonly [value: string, label: string])[]
}

type Values = Record<string, string | undefined>

/** Filters of a list. They are part of the address, so that a list can be shared. */
export function Filters({
  fields,
  values,
  onChange,
}: {
  fields: readonly FilterField[]
  values: Values
  onChange: (values: Values) => void
}) {
  const { filters } = useText()
  const queries = useQueryClient()
  const [entered, setEntered] = useState(values)
  const set = (name: string, value: string) => setEntered(before => ({ ...before, [name]: value }))

  function apply(event: FormEvent): void {
    event.preventDefault()
    const chosen = Object.fromEntries(fields.map(({ name }) => [name, entered[name]?.trim() || undefined]))
    // The same filters again: the list may have changed since.
    if (fields.every(({ name }) => chosen[name] === values[name])) void queries.refetchQueries({ type: 'active' })
    else onChange(chosen)
  }
  function clear(): void {
    const empty = Object.fromEntries(fields.map(({ name }) => [name, undefined]))
    setEntered(empty)
    onChange(empty)
  }
  const hasAny = fields.some(({ name }) => values[name])

  return (
    <form onSubmit={apply} aria-label={filters.label}>
      <Group gap="sm" align="flex-end" className="filters">
        {fields.map(field => (
          <Field key={field.name} field={field} value={entered[field.name] ?? ''} onChange={set} />
        ))}
        <Button type="submit" variant="default">
          {filters.apply}
        </Button>
        {hasAny && (
          <Button variant="subtle" onClick={clear}>
            {filters.clear}
          </Button>
        )}
      </Group>
    </form>
  )
}

type FieldProps = { field: FilterField; value: string; onChange: (name: string, value: string) => void }

function Field({ field: { name, label, placeholder, type, options }, value, onChange }: FieldProps) {
  const { filters } = useText()
  if (options)
    return (
      <NativeSelect
        label={label}
        value={value}
        onChange={event => onChange(name, event.currentTarget.value)}
        data={[{ value: '', label: filters.any }, ...options.map(([each, words]) => ({ value: each, label: words }))]}
      />
    )
  if (type === 'time') return <TimeInput label={label} value={value} onChange={utc => onChange(name, utc)} />
  return (
    <TextInput
      label={label}
      placeholder={placeholder ?? ''}
      value={value}
      onChange={event => onChange(name, event.currentTarget.value)}
    />
  )
}
