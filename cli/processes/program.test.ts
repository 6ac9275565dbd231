import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTempDir } from '../../test/setup/temp.ts'
import { until } from '../../test/setup/until.ts'
import { describeProcess } from './processes.ts'
import { startProgram } from './program.ts'

/** What hangs is named, with its last lines, before the test that waits for it is ended. */

/** A program that ignores SIGTERM. */
async function startUnresponsive() {
  const script = join(await makeTempDir('program'), 'unresponsive.mjs')
  await writeFile(
    script,
    `process.on('SIGTERM', () => console.log('I have heard it'))
     process.on('disconnect', () => process.exit())
     console.log('I listen')
     process.send({ type: 'ready', port: 1 })
     setInterval(() => {}, 1e6)`,
  )
  return startProgram(script, {})
}

test('a program that does not end is killed, and the error has its name and its last lines', async () => {
  const program = await startUnresponsive()
  const { pid } = program.process
  await expect(program.stop(1_000)).rejects.toThrow(
    new RegExp(`unresponsive.mjs \\(pid ${pid}\\) did not end after SIGTERM within 1 s, and was killed.*I listen`, 's'),
  )
  await until('it is gone', async () => (await describeProcess(pid!)) === undefined)
})

test('who waits in vain for a condition, or for the answer to the question, learns what the programs have written', async () => {
  const program = await startUnresponsive()
  try {
    await until('it has written', () => program.output().includes('I listen'))
    for (const ask of [() => false, () => new Promise<boolean>(() => {})])
      await expect(until('the answer is yes', ask, 100)).rejects.toThrow(
        /^Waited 0\.1 s in vain: the answer is yes\n.*unresponsive\.mjs \(pid \d+\); its last lines:\n {2}I listen/s,
      )
  } finally {
    await program.kill('SIGKILL')
  }
})
