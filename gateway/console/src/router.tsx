import { createRootRoute, createRoute, createRouter, Navigate, retainSearchParams } from '@tanstack/react-router'
import { z } from 'zod'
import { AuditPage, auditSearch } from './pages/audit.tsx'
import { LedgerPage } from './pages/ledger/ledger.tsx'
import { NotFoundPage } from './pages/not-found.tsx'
import { Shell } from './shell/shell.tsx'

/** On every page: the workspace that the operator has chosen. */
const rootSearch = z.object({ workspace: z.string().optional().catch(undefined) })

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFoundPage,
  validateSearch: rootSearch,
  search: { middlewares: [retainSearchParams(['workspace'])] },
})

const routes = root.addChildren([
  createRoute({ getParentRoute: () => root, path: '/', component: () => <Navigate to="/audit" replace /> }),
  createRoute({ getParentRoute: () => root, path: '/ledger', component: LedgerPage }),
  createRoute({ getParentRoute: () => root, path: '/audit', component: AuditPage, validateSearch: auditSearch }),
])

export const router = createRouter({ routeTree: routes, basepath: '/console' })

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
