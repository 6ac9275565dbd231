import { Badge } from '@mantine/core'
import { useText } from '../preferences/preferences.tsx'

const tones: Record<StatusName, string> = {
  ACTIVE: 'good',
  OPEN: 'good',
  COMPLETED: 'good',
  FROZEN: 'warn',
  PAUSED: 'warn',
  MOVING: 'warn',
  DISABLED: 'bad',
  HALTED: 'bad',
  EXPIRED: 'bad',
  CLOSED: 'ended',
  RELEASED: 'ended',
  CAPTURED: 'ended',
}

/** A status that has words in every language. */
type StatusName = keyof ReturnType<typeof useText>['statuses']

/** The status of a record, in a color and in words. */
export function Status({ of: status }: { of: StatusName }) {
  const { statuses } = useText()
  return <Tag tone={tones[status]}>{statuses[status]}</Tag>
}

export function Tag({ tone, children }: { tone: string; children: string }) {
  return (
    <Badge className={`tag tag-${tone}`} variant="outline" radius="sm" tt="none" fw={500}>
      {children}
    </Badge>
  )
}
