import { Anchor } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Empty, Page } from '../components/page.tsx'
import { useText } from '../preferences/preferences.tsx'

export function NotFoundPage() {
  const { notFound } = useText()
  return (
    <Page title={notFound.title}>
      <Empty
        action={
          <Anchor component={Link} to="/">
            {notFound.home}
          </Anchor>
        }
      >
        {notFound.about}
      </Empty>
    </Page>
  )
}
