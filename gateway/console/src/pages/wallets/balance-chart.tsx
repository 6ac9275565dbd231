import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Decimal, type Flow, type Wallet } from '@workspace-wallet/contract'
import { amountText } from '../../components/amount.tsx'
import { FailureAlert } from '../../components/failure.tsx'
import { Section } from '../../components/page.tsx'
import { useTimeText } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useSession } from '../../session/session.tsx'

/** How many flows the chart shows: as many as one call returns. */
const maxFlows = 1_000
const width = 800
const height = 200

type ChartProps = { workspaceId: string; wallet: Wallet }

/** The balance after each of the last flows, over time. */
export function BalanceChart({ workspaceId, wallet }: ChartProps) {
  const { wallets } = useText()
  const { client } = useSession()
  const { walletId, currency } = wallet
  const { data: flows, error } = useQuery({
    queryKey: ['balance-chart', workspaceId, walletId],
    queryFn: async ({ signal }) => {
      const { sequence } = await client.query('wallets.balance', { workspaceId, walletId }, signal)
      const range = { after: Math.max(0, sequence - maxFlows), upTo: sequence }
      return (await client.query('wallets.flowsAfter', { workspaceId, walletId, ...range }, signal)).content
    },
  })
  return (
    <Section title={wallets.balanceOverTime}>
      {error && <FailureAlert error={error} />}
      {flows?.length === 0 && <Text c="dimmed">{wallets.noFlows}</Text>}
      {flows && flows.length > 0 && <Chart flows={flows} currency={currency} />}
    </Section>
  )
}

function Chart({ flows, currency }: { flows: readonly Flow[]; currency: string }) {
  const { wallets } = useText()
  const write = useTimeText()
  const balances = flows.map(({ balanceAfter }) => balanceAfter)
  const lowest = Decimal.min(0, ...balances)
  const highest = Decimal.max(...balances)
  const [first, last] = [flows[0]!, flows.at(-1)!]
  const from = first.createdAt.getTime()
  // The last balance lasts until now.
  const until = Math.max(Date.now(), from + 1)
  const xOf = (time: number) => (width * (time - from)) / (until - from)
  // A position on the screen: the amounts themselves are never rounded.
  const yOf = (balance: Decimal) =>
    highest.eq(lowest) ? height : height - balance.minus(lowest).div(highest.minus(lowest)).times(height).toNumber()
  const steps = flows.map(({ createdAt, balanceAfter }, at) => {
    const [x, y] = [xOf(createdAt.getTime()).toFixed(1), yOf(balanceAfter).toFixed(1)]
    return at === 0 ? `M${x},${y}` : `H${x}V${y}`
  })
  const line = `${steps.join('')}H${width}`
  const text = (amount: Decimal) => `${amountText(amount, currency)} ${currency}`
  return (
    <figure className="chart">
      <svg
        viewBox={`0 -4 ${width} ${height + 8}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={wallets.chart(flows.length, text(lowest), text(highest), text(last.balanceAfter))}
      >
        <path d={`${line}V${height}H0Z`} className="chart-area" />
        <path d={line} className="chart-line" vectorEffect="non-scaling-stroke" />
      </svg>
      <div className="chart-scale">
        <span>{text(highest)}</span>
        <span>{text(lowest)}</span>
      </div>
      <figcaption>
        <span>{write(first.createdAt)}</span>
        <span>{wallets.now}</span>
      </figcaption>
    </figure>
  )
}
