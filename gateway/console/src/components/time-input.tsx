import { TextInput } from '@mantine/core'

type TimeInputProps = {
  label: string
  description?: string
  isRequired?: boolean
  /** ISO 8601 in UTC, or empty. */
  value: string
  onChange: (utc: string) => void
}

/** A time, which is entered in the zone of the browser. */
export function TimeInput({ label, description, isRequired = false, value, onChange }: TimeInputProps) {
  return (
    <TextInput
      label={label}
      description={description}
      type="datetime-local"
      required={isRequired}
      // A year has four digits.
      max="9999-12-31T23:59"
      value={value && toLocalInput(value)}
      onChange={event => onChange(toUtc(event.currentTarget.value))}
    />
  )
}

/** The value of a `datetime-local` field, which has no zone. */
function toLocalInput(utc: string): string {
  const at = new Date(utc)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function toUtc(local: string): string {
  return local === '' ? '' : new Date(local).toISOString()
}
