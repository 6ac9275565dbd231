import { createRootRoute, createRoute, createRouter, retainSearchParams } from '@tanstack/react-router'
import { z } from 'zod'
import { AuditPage, auditSearch } from './pages/audit.tsx'
import { EventsPage, eventsSearch } from './pages/events.tsx'
import { HoldsPage, holdsSearch } from './pages/holds.tsx'
import { KeyPage } from './pages/keys/key.tsx'
import { KeysPage, keysSearch } from './pages/keys/keys.tsx'
import { LedgerPage } from './pages/ledger/ledger.tsx'
import { NotFoundPage } from './pages/not-found.tsx'
import { OperatorsPage, operatorsSearch } from './pages/operators.tsx'
import { OverviewPage } from './pages/overview/overview.tsx'
import { RefusalsPage, refusalsSearch } from './pages/refusals.tsx'
import { SearchPage, searchSearch } from './pages/search.tsx'
import { TransferPage } from './pages/transfers/transfer.tsx'
import { TransfersPage, transfersSearch } from './pages/transfers/transfers.tsx'
import { WalletPage, walletSearch } from './pages/wallets/wallet.tsx'
import { WalletsPage, walletsSearch } from './pages/wallets/wallets.tsx'
import { WebhooksPage, webhooksSearch } from './pages/webhooks/webhooks.tsx'
import { WorkspacePage } from './pages/workspaces/workspace.tsx'
import { WorkspacesPage, workspacesSearch } from './pages/workspaces/workspaces.tsx'
import { Shell } from './shell/shell.tsx'

/** On every page: the workspace that the operator has chosen. */
const rootSearch = z.object({ workspace: z.string().optional().catch(undefined) })

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFoundPage,
  validateSearch: rootSearch,
  search: { middlewares: [retainSearchParams(['workspace'])] },
})
const at = { getParentRoute: () => root }

const routes = root.addChildren([
  createRoute({ ...at, path: '/', component: OverviewPage }),
  createRoute({ ...at, path: '/workspaces', component: WorkspacesPage, validateSearch: workspacesSearch }),
  createRoute({ ...at, path: '/workspaces/$workspaceId', component: WorkspacePage }),
  createRoute({ ...at, path: '/keys', component: KeysPage, validateSearch: keysSearch }),
  createRoute({ ...at, path: '/keys/$apiKey', component: KeyPage }),
  createRoute({ ...at, path: '/wallets', component: WalletsPage, validateSearch: walletsSearch }),
  createRoute({ ...at, path: '/wallets/$walletId', component: WalletPage, validateSearch: walletSearch }),
  createRoute({ ...at, path: '/transfers', component: TransfersPage, validateSearch: transfersSearch }),
  createRoute({ ...at, path: '/transfers/$transferId', component: TransferPage }),
  createRoute({ ...at, path: '/holds', component: HoldsPage, validateSearch: holdsSearch }),
  createRoute({ ...at, path: '/events', component: EventsPage, validateSearch: eventsSearch }),
  createRoute({ ...at, path: '/webhooks', component: WebhooksPage, validateSearch: webhooksSearch }),
  createRoute({ ...at, path: '/refusals', component: RefusalsPage, validateSearch: refusalsSearch }),
  createRoute({ ...at, path: '/ledger', component: LedgerPage }),
  createRoute({ ...at, path: '/operators', component: OperatorsPage, validateSearch: operatorsSearch }),
  createRoute({ ...at, path: '/search', component: SearchPage, validateSearch: searchSearch }),
  createRoute({ ...at, path: '/audit', component: AuditPage, validateSearch: auditSearch }),
])

export const router = createRouter({ routeTree: routes, basepath: '/console' })

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
