import { Alert, Button, Code, Group, Text } from '@mantine/core'
import { failureOf } from '../api/failures.ts'
import { useText } from '../preferences/preferences.tsx'

/** Why a call failed, with the ID to look for in the logs. */
export function FailureAlert({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const text = useText()
  const { message, code, requestId } = failureOf(error, text)
  return (
    <Alert
      color="red"
      variant="outline"
      role="alert"
      title={code ? `${text.failures.title} (${code})` : text.failures.title}
    >
      <Text size="sm">{message}</Text>
      {requestId && (
        <Text size="sm" mt="xs">
          {text.failures.requestId} <Code>{requestId}</Code>
        </Text>
      )}
      {onRetry && (
        <Group mt="sm">
          <Button size="compact-sm" variant="default" onClick={onRetry}>
            {text.actions.retry}
          </Button>
        </Group>
      )}
    </Alert>
  )
}
