/** The pages of the navigation, in order. */
export const navigation = [
  { to: '/ledger', name: 'ledger' },
  { to: '/audit', name: 'audit' },
] as const
