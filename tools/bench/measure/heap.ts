/** Measures the heap of a program that was started with `--inspect=127.0.0.1:0`. */
import type { Program } from '../../../cli/processes/program.ts'

export type Heap = {
  /** Collects garbage. Returns the size of the heap afterwards, in bytes. */
  measure(): Promise<number>
  close(): void
}

export async function openHeap(program: Program): Promise<Heap> {
  const url = /^Debugger listening on (ws:\S+)/m.exec(program.output())?.[1]
  if (!url) throw new Error(`The program has no inspector: start it with --inspect. Its output:\n${program.output()}`)
  const socket = new WebSocket(url)
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = () => reject(new Error(`The inspector at ${url} does not answer.`))
  })
  let count = 0
  const call = (method: string) =>
    new Promise<{ usedSize: number }>((resolve, reject) => {
      const id = ++count
      const receive = ({ data }: MessageEvent) => {
        const answer = JSON.parse(data)
        if (answer.id !== id) return
        socket.removeEventListener('message', receive)
        if (answer.error) reject(new Error(answer.error.message))
        else resolve(answer.result)
      }
      socket.addEventListener('message', receive)
      socket.send(JSON.stringify({ id, method }))
    })
  return {
    async measure() {
      // Finalizers that run after the first collection release more objects.
      await call('HeapProfiler.collectGarbage')
      await call('HeapProfiler.collectGarbage')
      return (await call('Runtime.getHeapUsage')).usedSize
    },
    close: () => socket.close(),
  }
}
