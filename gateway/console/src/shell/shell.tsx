import { Anchor, AppShell, Burger, Group, NavLink, ScrollArea, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useText } from '../preferences/preferences.tsx'
import { HeaderMenu } from './header-menu.tsx'
import { navigation } from './navigation.ts'
import { SearchBox } from './search-box.tsx'

/** What every page has: the navigation, the search box, and the menu of the operator. */
export function Shell() {
  const text = useText()
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu of a narrow screen closes on each move
  useEffect(close, [pathname])
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="lg"
    >
      <a href="#content" className="skip">
        {text.shell.skip}
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" gap="sm" wrap="nowrap" justify="space-between">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={text.shell.menu}
              aria-expanded={isOpen}
            />
            <Anchor component={Link} to="/" underline="never" c="inherit" visibleFrom="sm">
              <Text fw={700} span>
                {text.product}
              </Text>
            </Anchor>
          </Group>
          <SearchBox />
          <HeaderMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label={text.shell.pages}>
        <ScrollArea>
          {navigation.map(({ to, name }) => (
            <NavLink
              key={to}
              component={Link}
              to={to}
              label={text.navigation[name]}
              active={to === '/' ? pathname === '/' : pathname.startsWith(to)}
              aria-current={pathname === to ? 'page' : undefined}
            />
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Outlet />
      </AppShell.Main>
    </AppShell>
  )
}
