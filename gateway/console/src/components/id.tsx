import { ActionIcon, CopyButton } from '@mantine/core'
import type { ReactNode } from 'react'
import { useText } from '../preferences/preferences.tsx'
import { CheckIcon, CopyIcon } from './icons.tsx'

/** An ID that begins like others of its time: its last characters tell them apart. */
export function shortId(id: string): string {
  return /^[a-z]{2,3}_[0-9a-z]{26}/.test(id) ? `${id.slice(0, id.indexOf('_') + 1)}…${id.slice(-8)}` : id
}

/** A button that copies a text, such as an ID. `name`: of what has no short text. */
export function CopyText({ value, name = value }: { value: string; name?: string }) {
  const { actions } = useText()
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <ActionIcon
          variant="subtle"
          color="gray"
          size="sm"
          onClick={copy}
          aria-label={copied ? actions.copied : actions.copy(name)}
          title={actions.copy(name)}
        >
          {copied ? <CheckIcon /> : <CopyIcon />}
        </ActionIcon>
      )}
    </CopyButton>
  )
}

/** An ID in monospace with a button that copies it. `children`: a link with the ID instead of its text. */
export function Id({ value, isFull = false, children }: { value: string; isFull?: boolean; children?: ReactNode }) {
  return (
    <span className="id">
      <span title={value} className={isFull ? undefined : 'short-id'}>
        {children ?? (isFull ? value : shortId(value))}
      </span>
      <CopyText value={value} />
    </span>
  )
}
