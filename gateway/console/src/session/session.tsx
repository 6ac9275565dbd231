import { useQueryClient } from '@tanstack/react-query'
import type { Session as Identity } from '@workspace-wallet/contract'
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react'
import { type Client, createClient } from '../api/client.ts'

/** Who is signed in, and with what. */
export type Session = {
  client: Client
  identity: Identity
  /** Whether the operator may change anything. Core checks it, too: this only hides what would be refused. */
  mayChange: boolean
  /** Forgets the token. `isRefused`: because core no longer knows it. */
  signOut: (isRefused?: boolean) => void
}

export type SignIn = {
  session: Session | null
  /** Whether the token of this tab is being tried. */
  isRestoring: boolean
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
  const [signedIn, setSignedIn] = useState<{ token: string; identity: Identity } | null>(null)
  const [isRestoring, setRestoring] = useState(() => sessionStorage.getItem(storageKey) !== null)
  const [wasRefused, setRefused] = useState(false)

  const signOut = useCallback(
    (isRefused = false) => {
      sessionStorage.removeItem(storageKey)
      queries.clear()
      setRefused(isRefused)
      setSignedIn(null)
    },
    [queries],
  )
  const signIn = useCallback(async (token: string, isKept: boolean) => {
    const identity = await createClient(token).query('session.whoami', {})
    if (isKept) sessionStorage.setItem(storageKey, token)
    setRefused(false)
    setSignedIn({ token, identity })
  }, [])
  useEffect(() => {
    const kept = sessionStorage.getItem(storageKey)
    if (kept === null) return
    // If it is refused, the operator enters another one.
    signIn(kept, true)
      .catch(() => setRefused(true))
      .finally(() => setRestoring(false))
  }, [signIn])
  const session = useMemo(() => {
    if (signedIn === null) return null
    const { token, identity } = signedIn
    const client = createClient(token, () => signOut(true))
    return { client, identity, mayChange: identity.role === 'admin', signOut }
  }, [signedIn, signOut])
  return { session, isRestoring, wasRefused, signIn }
}
