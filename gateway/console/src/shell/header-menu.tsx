import { ActionIcon, Button, Group, Menu, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { MoonIcon, SunIcon } from '../components/icons.tsx'
import { type Language, languages } from '../locales/catalogue.ts'
import { usePreferences, useText } from '../preferences/preferences.tsx'
import { useSession } from '../session/session.tsx'

const ownNames: Record<Language, string> = { 'en-US': 'English', 'zh-CN': '中文' }

/** Theme, language, zone of times, and the way out. */
export function HeaderMenu() {
  const { shell } = useText()
  const { language, setLanguage, isUtc, setUtc } = usePreferences()
  const { identity, signOut } = useSession()
  return (
    <Group gap="xs" wrap="nowrap">
      <ThemeSwitch />
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" size="xs">
            {shell.settings}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{shell.signedInAs(identity.actor, identity.role)}</Menu.Label>
          {languages.map(each => (
            <Menu.Item key={each} lang={each} onClick={() => setLanguage(each)} aria-current={each === language}>
              {ownNames[each]}
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item onClick={() => setUtc(!isUtc)}>{isUtc ? shell.useLocalTime : shell.useUtc}</Menu.Item>
          <Menu.Divider />
          <Menu.Item onClick={() => signOut()}>{shell.signOut}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  )
}

function ThemeSwitch() {
  const { shell } = useText()
  const { setColorScheme } = useMantineColorScheme()
  const isDark = useComputedColorScheme('light') === 'dark'
  const name = isDark ? shell.lightTheme : shell.darkTheme
  return (
    <ActionIcon
      variant="default"
      size={30}
      aria-label={name}
      title={name}
      onClick={() => setColorScheme(isDark ? 'light' : 'dark')}
    >
      {isDark ? <SunIcon /> : <MoonIcon />}
    </ActionIcon>
  )
}
