import { ActionIcon, CopyButton } from '@mantine/core'
import type { ReactNode } from 'react'
import { useText } from '../preferences/preferences.tsx'
import { CheckIcon, CopyIcon } from './icons.tsx'

/** An ID that is long, and begins like others of its time: its last characters tell them apart. */
export function shortId(id: string): string {
  const [, prefix] = /^([a-z]+[_-](?=[0-9a-z]{26})|(?:[a-z]+[_-])?(?=[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}))/.exec(id) ?? []
  return prefix === undefined ? id : `${prefix}…${id.slice(-8)}`
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
