export const transfers = {
  about: 'Transfers between two wallets of a workspace. They are never changed: a reversal is a transfer of its own.',
  empty: 'No transfer matches. Clients make transfers with an API key that has the scope transfer:create.',
  transfer: 'Transfer',
  idPrefix: 'ID begins with',
  bizIdPrefix: 'bizId begins with',
  source: 'From',
  target: 'To',
  movement: 'What moved',
  reversed: 'Reversed',
  reverses: 'Reverses',
  reversals: 'Reversals',
  batch: 'Batch',
  hold: 'Hold',
  reverse: 'Reverse',
  reverseAbout: (remaining: string) =>
    `Moves money back from the target to the source: up to ${remaining}, which is what is not reversed yet.`,
  outside: 'Outside the workspace',
  flow: (sequence: number) => `Flow ${sequence}`,
  balanceAfter: 'Balance after',
  genuine: 'Intact',
  modified: 'Modified outside the service',
  actor: 'Made by',
  requestId: 'Request ID',
  clientAddress: 'Client address',
  position: 'Position in the log',
  receipt: 'Signed receipt',
  noReceipt: 'None: only intact transfers between wallets have one.',
  remarkAbout: 'Clients see it at the reversal.',
}

export const holds = {
  about: 'A hold reserves part of a wallet until it is captured, released or expires.',
  empty: 'No hold matches. Clients create holds with an API key that has the scope hold:create.',
  hold: 'Hold',
  bizIdPrefix: 'bizId begins with',
  captured: 'Captured',
  remaining: 'Remaining',
  expires: 'Expires',
  captures: 'Captures',
  release: 'Release',
  releaseAbout: (remaining: string) =>
    `Ends the hold: ${remaining} become available again, and the client can no longer capture them.`,
}

export const events = {
  about: 'Everything that happened in a workspace, in order, without gaps. New events appear by themselves.',
  events: 'Events',
  empty: 'There is no event yet. Creating a wallet is the first one.',
  follow: 'Follow',
  pause: 'Pause',
  live: 'Live',
  paused: 'Paused',
  position: 'Position',
  data: 'Data',
  showData: 'Show',
  newest: (count: number) => `The newest ${count} events are shown.`,
}

export const webhooks = {
  about: 'Webhooks deliver the events of a workspace to a URL of the client. Clients create them with an API key.',
  empty: 'No webhook matches. Clients create webhooks with an API key that has the scope webhook:manage.',
  url: 'URL',
  position: 'Position',
  lag: 'Events behind',
  lastAttempt: 'Last attempt',
  none: 'None yet',
  failingSince: 'Failing since',
  errors: {
    ADDRESS: 'the address is not allowed, or does not resolve',
    CONNECTION: 'no connection',
    TLS: 'TLS failed',
    TIMEOUT: 'no answer in time',
    PROTOCOL: 'the answer is not HTTP',
  },
  after: 'Continue after position',
  afterAbout: (head: number) => `From 0, which delivers everything again, to ${head}, which skips everything.`,
  actions: {
    pause: { name: 'Pause', about: 'Stops deliveries. The webhook keeps its position, and no event is lost.' },
    resume: { name: 'Resume', about: 'Continues deliveries where they stopped, with an attempt at once.' },
    seek: {
      name: 'Seek',
      about:
        'Moves the webhook to another position. The client gets events again, or never gets those that are skipped.',
    },
    delete: { name: 'Delete', about: 'Ends deliveries for good. A new webhook begins at the end of the log.' },
  },
}
