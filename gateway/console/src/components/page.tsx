import { Group, Stack, Text, Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'
import { useText } from '../preferences/preferences.tsx'

type PageProps = {
  title: string
  /** What the page is for, in a sentence. */
  about?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

/** A page with its heading, which is also the title of the document. */
export function Page({ title, about, actions, children }: PageProps) {
  const { product } = useText()
  useEffect(() => {
    document.title = `${title} – ${product}`
  }, [title, product])
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-start" gap="md">
        <div>
          <Title order={1} size="h2" className="wrap">
            <bdi>{title}</bdi>
          </Title>
          {about && (
            <Text c="dimmed" component="div" maw="70ch">
              {about}
            </Text>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  )
}

/** A part of a page with a heading of its own. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {title}
        </Title>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  )
}

/** An empty state: what to do first. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <Stack className="empty" align="flex-start" gap="sm">
      <Text>{children}</Text>
      {action}
    </Stack>
  )
}
