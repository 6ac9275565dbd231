import { useSearch } from '@tanstack/react-router'

/** The workspace of the page: it is part of the address, and stays when the operator moves to another page. */
export function useWorkspaceId(): string | undefined {
  return useSearch({ strict: false }).workspace
}
