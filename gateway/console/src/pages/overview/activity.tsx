import { Group, NativeSelect, SimpleGrid } from '@mantine/core'
import { Decimal, type HourlyTransfers, maxActivityHours, type SystemActivity } from '@workspace-wallet/contract'
import { type ReactNode, useState } from 'react'
import { Amount, amountText } from '../../components/amount.tsx'
import { BarChart } from '../../components/bar-chart.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Empty, Section } from '../../components/page.tsx'
import { useTimeText } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'

const refreshMs = 60_000
const hourMs = 3_600_000
/** Fewer hours, for an installation with too many transfers to count those of a day in time. */
const choices = [maxActivityHours, 6, 1]

/** How many transfers there were in each of the last hours, and how much they moved. */
export function ActivitySection() {
  const { overview } = useText()
  const [hours, setHours] = useState(maxActivityHours)
  const result = useRead('system.activity', { hours }, { refreshMs })
  return (
    <Section
      title={overview.activity}
      actions={
        <NativeSelect
          aria-label={overview.hours}
          size="xs"
          value={hours}
          onChange={event => setHours(Number(event.currentTarget.value))}
          data={choices.map(count => ({ value: String(count), label: overview.lastHours(count) }))}
        />
      }
    >
      <Loaded result={result}>
        {activity => (activity.totals.length === 0 ? <Empty>{overview.noActivity}</Empty> : <Charts {...activity} />)}
      </Loaded>
    </Section>
  )
}

function Charts({ from, now, totals }: SystemActivity) {
  const { overview, fields } = useText()
  const write = useTimeText()
  const currencies = currenciesOf(totals)
  const [chosen, setChosen] = useState(currencies[0]!)
  const currency = currencies.includes(chosen) ? chosen : currencies[0]!
  const hours = hoursBetween(from, now)
  const ends = [write(from), overview.thisHour] as const

  const counts = hours.map(hour => countOf(totals, hour))
  const mostTransfers = Math.max(...counts)
  const sum = counts.reduce((total, count) => total + count, 0)

  const ofCurrency = totals.filter(each => each.currency === currency)
  const volumes = hours.map(hour => ofCurrency.find(each => each.hour.getTime() === hour)?.volume ?? new Decimal(0))
  const highest = Decimal.max(...volumes)
  const moved = volumes.reduce((total, volume) => total.plus(volume), new Decimal(0))
  const text = (volume: Decimal) => `${amountText(volume, currency)} ${currency}`

  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <div>
        <ChartTitle name={overview.transfers} total={sum} />
        <BarChart
          label={overview.transfersChart(sum, mostTransfers)}
          highest={String(mostTransfers)}
          ends={ends}
          bars={hours.map((hour, at) => ({
            key: String(hour),
            // The height of a bar, in parts of the highest.
            value: counts[at]! / mostTransfers,
            text: `${write(new Date(hour))}: ${overview.transferCount(counts[at]!)}`,
          }))}
        />
      </div>
      <div>
        <ChartTitle name={overview.volume} total={<Amount value={moved} currency={currency} />}>
          <NativeSelect
            aria-label={fields.currency}
            size="xs"
            value={currency}
            onChange={event => setChosen(event.currentTarget.value)}
            data={currencies}
          />
        </ChartTitle>
        <BarChart
          label={overview.volumeChart(text(moved), text(highest))}
          highest={text(highest)}
          ends={ends}
          bars={hours.map((hour, at) => ({
            key: String(hour),
            // A position on the screen: the amounts themselves are never rounded.
            value: highest.isZero() ? 0 : volumes[at]!.div(highest).toNumber(),
            text: `${write(new Date(hour))}: ${text(volumes[at]!)}`,
          }))}
        />
      </div>
    </SimpleGrid>
  )
}

function ChartTitle({ name, total, children }: { name: string; total: ReactNode; children?: ReactNode }) {
  return (
    <Group justify="space-between" mih={30} mb={4}>
      <span>
        <span className="card-title">{name}</span> <strong>{total}</strong>
      </span>
      {children}
    </Group>
  )
}

/** The currencies, the one with the most transfers first. */
function currenciesOf(totals: readonly HourlyTransfers[]): string[] {
  const counts = new Map<string, number>()
  for (const { currency, transfers } of totals) counts.set(currency, (counts.get(currency) ?? 0) + transfers)
  return [...counts].toSorted(([, a], [, b]) => b - a).map(([currency]) => currency)
}

function countOf(totals: readonly HourlyTransfers[], hour: number): number {
  return totals.filter(each => each.hour.getTime() === hour).reduce((sum, { transfers }) => sum + transfers, 0)
}

/** The beginnings of the hours from `from` to `now`, in milliseconds. */
function hoursBetween(from: Date, now: Date): number[] {
  const count = Math.floor((now.getTime() - from.getTime()) / hourMs) + 1
  return Array.from({ length: count }, (_, at) => from.getTime() + at * hourMs)
}
