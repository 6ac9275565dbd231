import { usePreferences } from '../preferences/preferences.tsx'

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(language: string, isUtc: boolean): Intl.DateTimeFormat {
  const key = `${language} ${isUtc}`
  const known = formats.get(key)
  if (known) return known
  const format = new Intl.DateTimeFormat(language, {
    dateStyle: 'medium',
    timeStyle: 'medium',
    ...(isUtc && { timeZone: 'UTC' }),
  })
  formats.set(key, format)
  return format
}

/** Writes times in the language of the operator, in the zone of the browser or in UTC. */
export function useTimeText(): (at: Date) => string {
  const { language, isUtc } = usePreferences()
  return at => formatOf(language, isUtc).format(at) + (isUtc ? ' UTC' : '')
}

/** A time. Its tool tip is the same time in UTC, with milliseconds. */
export function Time({ at }: { at: Date | string }) {
  const write = useTimeText()
  const date = typeof at === 'string' ? new Date(at) : at
  return (
    <time dateTime={date.toISOString()} title={date.toISOString()} className="time">
      {write(date)}
    </time>
  )
}
