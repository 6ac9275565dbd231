import { setImmediate } from 'node:timers/promises'

/** Rows that are checked in one turn of the event loop: a call waits for a turn of each page several times before it is answered. */
const rowsPerTurn = 16

/** Works on rows in order, in several turns of the event loop, so that many rows delay no other call. */
export async function inTurns<Row>(rows: Iterable<Row>, work: (row: Row) => void | Promise<void>): Promise<void> {
  let left = rowsPerTurn
  for (const row of rows) {
    if (left-- === 0) {
      await setImmediate()
      left = rowsPerTurn - 1
    }
    await work(row)
  }
}
