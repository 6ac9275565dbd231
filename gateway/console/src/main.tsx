import { styleNonce } from './hardening.ts'
import '@mantine/core/styles.css'
import './styles.css'
import { MantineProvider } from '@mantine/core'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { SignInPage } from './pages/sign-in.tsx'
import { PreferencesProvider } from './preferences/preferences.tsx'
import { router } from './router.tsx'
import { SessionProvider, useSignIn } from './session/session.tsx'
import { contrastVariables, theme } from './theme.ts'

function Console() {
  const { session, isRestoring, wasRefused, signIn } = useSignIn()
  if (isRestoring) return null
  if (!session) return <SignInPage signIn={signIn} wasRefused={wasRefused} />
  return (
    <SessionProvider session={session}>
      <RouterProvider router={router} />
    </SessionProvider>
  )
}

const queries = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: 5_000 } } })
createRoot(document.getElementById('root')!).render(
  <MantineProvider
    theme={theme}
    cssVariablesResolver={contrastVariables}
    defaultColorScheme="auto"
    getStyleNonce={() => styleNonce}
  >
    <QueryClientProvider client={queries}>
      <PreferencesProvider>
        <Console />
      </PreferencesProvider>
    </QueryClientProvider>
  </MantineProvider>,
)
