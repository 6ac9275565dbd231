import { Alert, Button, Code, Group, Stack, Text } from '@mantine/core'
import { CopyText } from '../../components/id.tsx'
import { useText } from '../../preferences/preferences.tsx'

export type Issued = { apiKey: string; apiSecret: string }

/** A new secret, which is shown once, with a first call to try it. */
export function IssuedKey({ issued: { apiKey, apiSecret }, onClose }: { issued: Issued; onClose: () => void }) {
  const { keys, actions } = useText()
  const call = `API_KEY='${apiKey}' API_SECRET='${apiSecret}' npm run call -- GET '/api/v1/wallets?size=1'`
  return (
    <Stack>
      <Alert color="orange" variant="outline">
        {keys.onlyOnce}
      </Alert>
      <Copied label={keys.apiKey} value={apiKey} />
      <Copied label={keys.apiSecret} value={apiSecret} />
      <Copied label={keys.firstCall} value={call} />
      <Group justify="flex-end">
        <Button onClick={onClose}>{actions.close}</Button>
      </Group>
    </Stack>
  )
}

function Copied({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <Text size="sm" fw={500}>
        {label}
      </Text>
      <Group gap="xs" wrap="nowrap">
        <Code className="wrap">{value}</Code>
        <CopyText value={value} name={label} />
      </Group>
    </div>
  )
}
