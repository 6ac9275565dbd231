import { Checkbox, Group } from '@mantine/core'
import { type Scope, scopes } from '@workspace-wallet/contract'
import { useText } from '../../preferences/preferences.tsx'

/** What a key may do. */
export function ScopesInput({ value, onChange }: { value: Scope[]; onChange: (scopes: Scope[]) => void }) {
  const { keys } = useText()
  return (
    <Checkbox.Group
      label={keys.scopes}
      description={keys.scopesAbout}
      value={value}
      onChange={chosen => onChange(scopes.filter(scope => chosen.includes(scope)))}
      required
    >
      <Group gap="sm" mt="xs">
        {scopes.map(scope => (
          <Checkbox key={scope} value={scope} label={scope} />
        ))}
      </Group>
    </Checkbox.Group>
  )
}
