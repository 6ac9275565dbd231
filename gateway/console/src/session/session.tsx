import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from 'react'
import { type Client, createClient, type ProcedurePath } from '../api/client.ts'

/** What the operator is signed in with. */
export type Session = {
  client: Client
  /** Whether the operator may call a procedure. Core checks it, too: this only hides what would be refused. */
  may: (path: ProcedurePath) => boolean
  /** Forgets the token. `isRefused`: because core no longer knows it. */
  signOut: (isRefused?: boolean) => void
}

export type SignIn = {
  session: Session | null
  wasRefused: boolean
  signIn: (token: string, isKept: boolean) => Promise<void>
}

const SessionContext = createContext<Session | null>(null)

/** Of the tab: it is gone when the tab is closed. */
const storageKey = 'console-token'

export function useSession(): Session {
  const session = useContext(SessionContext)
  if (!session) throw new Error('nobody is signed in')
  return session
}

export function SessionProvider({ session, children }: { session: Session; children: ReactNode }) {
  return <SessionContext value={session}>{children}</SessionContext>
}

/** Keeps the token in memory, and for the session of the tab only if asked. */
export function useSignIn(): SignIn {
  const queries = useQueryClient()
  const [token, setToken] = useState(() => sessionStorage.getItem(storageKey))
  const [wasRefused, setRefused] = useState(false)

  const signOut = useCallback(
    (isRefused = false) => {
      sessionStorage.removeItem(storageKey)
      queries.clear()
      setRefused(isRefused)
      setToken(null)
    },
    [queries],
  )
  const signIn = useCallback(async (entered: string, isKept: boolean) => {
    await createClient(entered).query('ledger.halted', {})
    if (isKept) sessionStorage.setItem(storageKey, entered)
    setRefused(false)
    setToken(entered)
  }, [])
  const session = useMemo(
    () => (token === null ? null : { client: createClient(token, () => signOut(true)), may: () => true, signOut }),
    [token, signOut],
  )
  return { session, wasRefused, signIn }
}
