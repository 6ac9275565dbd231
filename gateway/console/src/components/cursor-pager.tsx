import { Button, Group } from '@mantine/core'
import { useText } from '../preferences/preferences.tsx'
import { useList } from './record-list.tsx'

/**
 * Moves on in a list whose next page begins after the last record of this one. The browser goes back.
 *
 * @param name of the parameter in the address
 */
export function CursorPager({ next, name = 'after' }: { next: string | null; name?: string }) {
  const { pages } = useText()
  const { search, change } = useList()
  if (search[name] === undefined && next === null) return null
  return (
    <Group component="nav" aria-label={pages.label} justify="flex-end" gap="xs">
      <Button
        size="compact-sm"
        variant="default"
        disabled={search[name] === undefined}
        onClick={() => change({ [name]: undefined })}
      >
        {pages.first}
      </Button>
      <Button
        size="compact-sm"
        variant="default"
        disabled={next === null}
        onClick={() => change({ [name]: next ?? undefined })}
      >
        {pages.next}
      </Button>
    </Group>
  )
}

/** Moves on in a list inside a page that has several of them, and from its end back to its beginning. `after`: null on the first page. */
export function SectionPager({ after, next, onChange }: SectionPagerProps) {
  const { pages } = useText()
  if (after === null && next === null) return null
  return (
    <div>
      <Button size="compact-sm" variant="default" onClick={() => onChange(next)}>
        {next === null ? pages.first : pages.next}
      </Button>
    </div>
  )
}

type SectionPagerProps = { after: string | null; next: string | null; onChange: (after: string | null) => void }
