import { Alert, Button, Center, Checkbox, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { type FormEvent, useEffect, useState } from 'react'
import { FailureAlert } from '../components/failure.tsx'
import { useText } from '../preferences/preferences.tsx'
import type { SignIn } from '../session/session.tsx'

/** Asks for a service token, and tries it. */
export function SignInPage({ signIn, wasRefused }: Pick<SignIn, 'signIn' | 'wasRefused'>) {
  const text = useText()
  const [token, setToken] = useState('')
  const [isKept, setKept] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const [isPending, setPending] = useState(false)
  useEffect(() => {
    document.title = `${text.signIn.title} – ${text.product}`
  }, [text])

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    if (isPending) return
    setPending(true)
    setError(null)
    await signIn(token.trim(), isKept).catch(setError)
    setPending(false)
  }

  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="xl" w="100%" maw={440} component="form" onSubmit={submit}>
        <Stack>
          <Title order={1} size="h3">
            {text.product}
          </Title>
          <Text size="sm" c="dimmed">
            {text.signIn.about}
          </Text>
          {wasRefused && !error && (
            <Alert color="orange" variant="outline" role="alert">
              {text.signIn.refused}
            </Alert>
          )}
          {error !== null && <FailureAlert error={error} />}
          <PasswordInput
            label={text.signIn.token}
            required
            autoFocus
            autoComplete="off"
            value={token}
            onChange={event => setToken(event.currentTarget.value)}
            visibilityToggleButtonProps={{ 'aria-label': text.signIn.showToken, tabIndex: 0 }}
          />
          <Checkbox
            label={text.signIn.keep}
            checked={isKept}
            onChange={event => setKept(event.currentTarget.checked)}
          />
          <Button type="submit" loading={isPending}>
            {text.signIn.submit}
          </Button>
        </Stack>
      </Paper>
    </Center>
  )
}
