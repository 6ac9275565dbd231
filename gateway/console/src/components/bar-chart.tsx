/** One bar. `value`: its height, in any unit; `text`: what it stands for. */
export type Bar = { key: string; value: number; text: string }

type BarChartProps = {
  /** What the chart shows, in words: a reader who does not see it gets nothing else. */
  label: string
  bars: readonly Bar[]
  /** The value at the top. */
  highest: string
  /** Of the first and of the last bar. */
  ends: readonly [first: string, last: string]
}

const width = 800
const height = 120

/** Bars from left to right. The position of the pointer shows what a bar stands for. */
export function BarChart({ label, bars, highest, ends }: BarChartProps) {
  const most = Math.max(...bars.map(({ value }) => value))
  const step = width / bars.length
  return (
    <figure className="chart bar-chart">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {bars.map(({ key, value, text }, at) => {
          // A bar of something is never invisible.
          const barHeight = value === 0 ? 0 : Math.max(2, (height * value) / most)
          return (
            <g key={key}>
              <title>{text}</title>
              <rect x={at * step} y={0} width={step} height={height} className="chart-column" />
              <rect
                x={at * step + 2}
                y={height - barHeight}
                width={step - 4}
                height={barHeight}
                className="chart-bar"
              />
            </g>
          )
        })}
      </svg>
      <div className="chart-scale">
        <span>{highest}</span>
        <span>0</span>
      </div>
      <figcaption>
        {ends.map(end => (
          <span key={end}>{end}</span>
        ))}
      </figcaption>
    </figure>
  )
}
