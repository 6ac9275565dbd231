/** The pages of the navigation, in order. */
export const navigation = [
  { to: '/', name: 'overview' },
  { to: '/workspaces', name: 'workspaces' },
  { to: '/keys', name: 'keys' },
  { to: '/wallets', name: 'wallets' },
  { to: '/transfers', name: 'transfers' },
  { to: '/holds', name: 'holds' },
  { to: '/events', name: 'events' },
  { to: '/webhooks', name: 'webhooks' },
  { to: '/refusals', name: 'refusals' },
  { to: '/ledger', name: 'ledger' },
  { to: '/operators', name: 'operators' },
  { to: '/audit', name: 'audit' },
] as const
