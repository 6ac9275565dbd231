import type { Program } from '../../cli/processes/program.ts'

export type LogLine = Record<string, unknown> & { msg: string }

/** The complete lines that a program has logged so far. */
export function logLines(program: Program): LogLine[] {
  const complete = program.output().split('\n').slice(0, -1)
  return complete.map(line => JSON.parse(line))
}
