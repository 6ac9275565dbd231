import { Button, Group, Text } from '@mantine/core'
import { useText } from '../preferences/preferences.tsx'

type PagerProps = {
  page: { size: number; number: number; totalElements: number; totalPages: number }
  onPage: (page: number) => void
}

/** Moves between the pages of a list. The number of the page is part of the address. */
export function Pager({ page: { number, size, totalElements, totalPages }, onPage }: PagerProps) {
  const { pages } = useText()
  if (totalElements === 0) return null
  const first = number * size + 1
  const last = Math.min(totalElements, first + size - 1)
  return (
    <Group component="nav" aria-label={pages.label} justify="space-between">
      <Text size="sm" c="dimmed" role="status">
        {pages.range(first, last, totalElements)}
      </Text>
      <Group gap="xs">
        <Button size="compact-sm" variant="default" disabled={number === 0} onClick={() => onPage(0)}>
          {pages.first}
        </Button>
        <Button size="compact-sm" variant="default" disabled={number === 0} onClick={() => onPage(number - 1)}>
          {pages.previous}
        </Button>
        <Button
          size="compact-sm"
          variant="default"
          disabled={number >= totalPages - 1}
          onClick={() => onPage(number + 1)}
        >
          {pages.next}
        </Button>
      </Group>
    </Group>
  )
}
