import { Badge } from '@mantine/core'
import { useText } from '../preferences/preferences.tsx'

const tones: Record<string, string> = {
  ACTIVE: 'good',
  OPEN: 'good',
  COMPLETED: 'good',
  FROZEN: 'warn',
  PAUSED: 'warn',
  DISABLED: 'bad',
  HALTED: 'bad',
  EXPIRED: 'bad',
  CLOSED: 'ended',
  RELEASED: 'ended',
  CAPTURED: 'ended',
}

/** The status of a record, in a color and in words. */
export function Status({ of: status }: { of: string }) {
  const { statuses } = useText()
  const words = statuses as Record<string, string>
  return <Tag tone={tones[status] ?? 'ended'}>{words[status] ?? status}</Tag>
}

export function Tag({ tone, children }: { tone: string; children: string }) {
  return (
    <Badge className={`tag tag-${tone}`} variant="outline" radius="sm" tt="none" fw={500}>
      {children}
    </Badge>
  )
}
