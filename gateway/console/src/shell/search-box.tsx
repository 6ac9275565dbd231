import { Kbd, TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { SearchIcon } from '../components/icons.tsx'
import { useText } from '../preferences/preferences.tsx'

/** Finds what an ID names. The key `/` moves to it from anywhere but a field. */
export function SearchBox() {
  const { shell } = useText()
  const navigate = useNavigate()
  const field = useRef<HTMLInputElement>(null)
  const [entered, setEntered] = useState('')

  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isInField =
        event.target instanceof HTMLElement && event.target.closest('input, textarea, select, [role=dialog]')
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isInField) return
      event.preventDefault()
      field.current?.focus()
      field.current?.select()
    }
    document.addEventListener('keydown', focus)
    return () => document.removeEventListener('keydown', focus)
  }, [])

  function search(event: FormEvent): void {
    event.preventDefault()
    const text = entered.trim()
    if (text !== '') void navigate({ to: '/search', search: { text } })
  }

  return (
    <search className="search">
      <form onSubmit={search}>
        <TextInput
          ref={field}
          type="search"
          aria-label={shell.search}
          placeholder={shell.search}
          leftSection={<SearchIcon />}
          rightSection={<Kbd size="xs">/</Kbd>}
          value={entered}
          onChange={event => setEntered(event.currentTarget.value)}
        />
      </form>
    </search>
  )
}
