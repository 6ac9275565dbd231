import { Alert, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { type FormEvent, type ReactNode, useRef, useState } from 'react'
import { useText } from '../preferences/preferences.tsx'
import { FailureAlert } from './failure.tsx'

/** Why the operator does it: a part of the input of a call. Empty if the form does not ask. */
export type Reason = { reason?: string }

type ActionFormProps = {
  title: string
  /** What the action will do. */
  about: ReactNode
  /** The text of the button that submits it, if it is not the title. */
  submit?: string
  /** What cannot be undone, moves money, or stops others from working: it is red. */
  isDangerous?: boolean
  /** Whether the audit keeps why the operator does it: by default, of what is dangerous. */
  asksReason?: boolean
  children?: ReactNode
  /** The form stays open, with the failure, if this rejects. */
  onSubmit: (reason: Reason) => Promise<unknown>
  /** Whether the form stays open after the action, to show what it has returned. */
  staysOpen?: boolean
  onClose: () => void
}

/**
 * The dialog of an action. It is submitted once: a second click waits for the answer to the first. Mount it when it opens, so that
 * each opening has a state, and a bizId, of its own.
 */
export function ActionForm(props: ActionFormProps) {
  const { title, about, submit = title, isDangerous = false, asksReason = isDangerous, staysOpen = false } = props
  const { children, onSubmit, onClose } = props
  const { actions } = useText()
  const [reason, setReason] = useState('')
  const [error, setError] = useState<unknown>(null)
  const [isPending, setPending] = useState(false)
  const isSubmitted = useRef(false)

  async function run(event: FormEvent): Promise<void> {
    event.preventDefault()
    if (isSubmitted.current) return
    isSubmitted.current = true
    setPending(true)
    setError(null)
    try {
      await onSubmit(asksReason ? { reason: reason.trim() } : {})
      if (!staysOpen) onClose()
    } catch (failure) {
      setError(failure)
    } finally {
      isSubmitted.current = false
      setPending(false)
    }
  }

  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ 'aria-label': actions.closeDialog }} size="lg">
      <form onSubmit={run}>
        <Stack gap="md">
          {isDangerous ? (
            <Alert color="red" variant="outline">
              {about}
            </Alert>
          ) : (
            <Text component="div" size="sm">
              {about}
            </Text>
          )}
          {children}
          {asksReason && (
            <TextInput
              label={actions.reason}
              description={actions.reasonAbout}
              required
              maxLength={256}
              value={reason}
              onChange={event => setReason(event.currentTarget.value)}
            />
          )}
          {error !== null && <FailureAlert error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {actions.cancel}
            </Button>
            <Button type="submit" color={isDangerous ? 'red' : 'brand'} loading={isPending}>
              {submit}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
