import { Alert, Button, Code, Group, Modal, Stack, Text } from '@mantine/core'
import { useText } from '../preferences/preferences.tsx'
import { CopyText } from './id.tsx'

type ShownOnceProps = {
  title: string
  about: string
  values: readonly { label: string; value: string }[]
  onClose: () => void
}

/** The dialog of a secret that is shown once. A click next to it does not close it. */
export function ShownOnce({ title, about, values, onClose }: ShownOnceProps) {
  const { actions } = useText()
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      size="xl"
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': actions.closeDialog }}
    >
      <Stack>
        <Alert color="orange" variant="outline">
          {about}
        </Alert>
        {values.map(({ label, value }) => (
          <div key={label}>
            <Text size="sm" fw={500}>
              {label}
            </Text>
            <Group gap="xs" wrap="nowrap">
              <Code className="wrap">{value}</Code>
              <CopyText value={value} name={label} />
            </Group>
          </div>
        ))}
        <Group justify="flex-end">
          <Button onClick={onClose}>{actions.close}</Button>
        </Group>
      </Stack>
    </Modal>
  )
}
