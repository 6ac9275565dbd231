import { Button, Group } from '@mantine/core'
import { maxFlowsAfter, statementCsv, type WalletStatement } from '@workspace-wallet/contract'
import { type FormEvent, useState } from 'react'
import type { Client } from '../../api/client.ts'
import { Amount, widestFraction } from '../../components/amount.tsx'
import { Facts } from '../../components/facts.tsx'
import { FailureAlert } from '../../components/failure.tsx'
import { Section } from '../../components/page.tsx'
import { save } from '../../components/save.ts'
import { TimeInput } from '../../components/time-input.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useSession } from '../../session/session.tsx'

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
      const file = new Blob(await csvParts(client, { workspaceId, walletId }, of), { type: 'text/csv' })
      const [first, end] = [of.from, of.to].map(time => time.toISOString().slice(0, 10))
      save(file, `${walletId}-${first}-${end}.csv`)
    })
  }

  return (
    <Section title={wallets.statement}>
      <form onSubmit={show} aria-label={wallets.statement}>
        <Group gap="sm" align="flex-end">
          <TimeInput label={filters.from} isRequired value={from} onChange={setFrom} />
          <TimeInput label={filters.to} isRequired value={to} onChange={setTo} />
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

/** The file of a statement, in the format of `statement export`. */
async function csvParts(client: Client, scope: Scope, statement: WalletStatement): Promise<string[]> {
  const { firstSequence, lastSequence } = statement
  const parts = [statementCsv.header]
  if (firstSequence !== null && lastSequence !== null) {
    for (let after = firstSequence - 1; after < lastSequence; after += maxFlowsAfter) {
      const { content } = await client.query('wallets.flowsAfter', { ...scope, after, upTo: lastSequence })
      parts.push(...content.map(statementCsv.flow))
    }
  }
  return [...parts, statementCsv.totals(statement)]
}
