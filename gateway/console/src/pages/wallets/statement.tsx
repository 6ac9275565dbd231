import { Button, Group, TextInput } from '@mantine/core'
import { type Flow, maxFlowsAfter, type WalletStatement } from '@workspace-wallet/contract'
import { type FormEvent, useState } from 'react'
import type { Client } from '../../api/client.ts'
import { Amount, widestFraction } from '../../components/amount.tsx'
import { Facts } from '../../components/facts.tsx'
import { FailureAlert } from '../../components/failure.tsx'
import { toLocalInput, toUtc } from '../../components/filters.tsx'
import { Section } from '../../components/page.tsx'
import { save } from '../../components/save.ts'
import { useText } from '../../preferences/preferences.tsx'
import { useSession } from '../../session/session.tsx'
import { csvOf } from './statement-file.ts'

type Scope = { workspaceId: string; walletId: string }

const dayMs = 24 * 3_600_000
/** Younger than that, a statement could still change. */
const settledMs = 60_000

/** Balances and totals of a range of time, and its flows as a file. */
export function StatementSection({ workspaceId, walletId, currency }: Scope & { currency: string }) {
  const { wallets, filters } = useText()
  const { client } = useSession()
  const [from, setFrom] = useState(() => new Date(Date.now() - 30 * dayMs).toISOString())
  const [to, setTo] = useState(() => new Date(Date.now() - settledMs).toISOString())
  const [statement, setStatement] = useState<WalletStatement | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isPending, setPending] = useState(false)

  async function attempt(action: () => Promise<void>): Promise<void> {
    if (isPending) return
    setPending(true)
    setError(null)
    await action().catch(setError)
    setPending(false)
  }
  function show(event: FormEvent): void {
    event.preventDefault()
    void attempt(async () => {
      setStatement(null)
      const range = { from: new Date(from), to: new Date(to) }
      setStatement(await client.query('wallets.statement', { workspaceId, walletId, ...range }))
    })
  }
  function download(of: WalletStatement): void {
    void attempt(async () => {
      const flows = await readFlows(client, { workspaceId, walletId }, of)
      save(
        new Blob([csvOf(of, flows)], { type: 'text/csv' }),
        `${walletId}-${from.slice(0, 10)}-${to.slice(0, 10)}.csv`,
      )
    })
  }

  return (
    <Section title={wallets.statement}>
      <form onSubmit={show} aria-label={wallets.statement}>
        <Group gap="sm" align="flex-end">
          <TimeInput label={filters.from} value={from} onChange={setFrom} />
          <TimeInput label={filters.to} value={to} onChange={setTo} />
          <Button type="submit" variant="default" loading={isPending}>
            {wallets.showStatement}
          </Button>
        </Group>
      </form>
      {error !== null && <FailureAlert error={error} />}
      {statement && (
        <>
          <Totals statement={statement} currency={currency} />
          <div>
            <Button variant="default" loading={isPending} onClick={() => download(statement)}>
              {wallets.downloadCsv(statement.flowCount)}
            </Button>
          </div>
        </>
      )}
    </Section>
  )
}

function TimeInput({ label, value, onChange }: { label: string; value: string; onChange: (utc: string) => void }) {
  return (
    <TextInput
      label={label}
      type="datetime-local"
      required
      value={value && toLocalInput(value)}
      onChange={event => onChange(toUtc(event.currentTarget.value))}
    />
  )
}

function Totals({ statement, currency }: { statement: WalletStatement; currency: string }) {
  const { wallets } = useText()
  const fraction = widestFraction([currency])
  const names = ['opening', 'totalIn', 'totalOut', 'closing'] as const
  return (
    <Facts
      facts={names.map(name => [
        wallets[name],
        <Amount key={name} value={statement[name]} currency={currency} fraction={fraction} />,
      ])}
    />
  )
}

async function readFlows(
  client: Client,
  scope: Scope,
  { firstSequence, lastSequence }: WalletStatement,
): Promise<Flow[]> {
  const flows: Flow[] = []
  if (firstSequence === null || lastSequence === null) return flows
  for (let after = firstSequence - 1; after < lastSequence; after += maxFlowsAfter) {
    const { content } = await client.query('wallets.flowsAfter', { ...scope, after, upTo: lastSequence })
    flows.push(...content)
  }
  return flows
}
