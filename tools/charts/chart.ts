/** Charts of measurements, as SVG for the pages of docs. */
import { parse, View } from 'vega'
import { compile, type TopLevelSpec } from 'vega-lite'

/** A measured value. Points of the same series are connected. */
export type Point = { series: string; x: number; y: number }

export type Panel = {
  title: string
  xTitle: string
  yTitle: string
  points: readonly Point[]
  /** The axes that begin at 0 and are not logarithmic. */
  linear?: readonly ('x' | 'y')[]
}

const seriesColors = ['#1f6feb', '#d1242f', '#8250df', '#1a7f37']

/** Draws panels, two in a row, each with a legend if it has several series. @returns an SVG document */
export async function drawChart(panels: readonly Panel[]): Promise<string> {
  const spec: TopLevelSpec = {
    background: 'white',
    padding: 12,
    config: { font: 'sans-serif', view: { stroke: null }, axis: { gridColor: '#e4e7eb' } },
    columns: 2,
    resolve: { scale: { color: 'independent' } },
    concat: panels.map(({ title, xTitle, yTitle, points, linear = [] }) => ({
      title,
      width: 320,
      height: 240,
      data: { values: [...points] },
      mark: { type: 'line' as const, point: true },
      encoding: {
        x: {
          field: 'x',
          type: 'quantitative' as const,
          title: xTitle,
          ...(linear.includes('x')
            ? {}
            : {
                scale: { type: 'log' as const, base: 2, nice: false },
                axis: { values: [...new Set(points.map(({ x }) => x))], format: '~s' },
              }),
        },
        y: {
          field: 'y',
          type: 'quantitative' as const,
          title: yTitle,
          scale: linear.includes('y') ? { zero: true } : { type: 'log' as const },
          axis: { format: '~s', tickCount: 6 },
        },
        color: {
          field: 'series',
          type: 'nominal' as const,
          title: null,
          legend: { orient: 'bottom' as const, labelLimit: 0 },
          scale: { range: seriesColors },
        },
      },
    })),
  }
  return new View(parse(compile(spec).spec), { renderer: 'none' }).toSVG()
}
