import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * A way over TCP to a server of this machine, which can be cut and mended, and which can lose what comes back. With
 * `cutBefore`, an answer passes up to that text, and the connection ends there.
 */
export async function openPath(port: number, cutBefore?: string) {
  const ends = new Set<Socket>()
  let isLossy = false
  let lost = 0
  const way = createServer(client => {
    const server = connect(port, '127.0.0.1')
    client.pipe(server)
    server.on('data', (answer: Buffer) => {
      if (isLossy) {
        lost++
        client.destroy()
        return
      }
      const at = cutBefore === undefined ? -1 : answer.indexOf(cutBefore)
      if (at < 0) client.write(answer)
      else client.end(answer.subarray(0, at))
    })
    for (const [end, other] of [
      [client, server],
      [server, client],
    ] as const) {
      ends.add(end)
      end
        .on('error', () => {})
        .once('close', () => {
          ends.delete(end)
          other.destroy()
        })
    }
  }).listen(0, '127.0.0.1')
  await once(way, 'listening')
  const { port: ownPort } = way.address() as AddressInfo
  return {
    port: ownPort,
    url: `http://127.0.0.1:${ownPort}`,
    /** Ends every connection; new ones are refused. */
    cut(): void {
      way.close()
      for (const end of ends) end.destroy()
    },
    async mend(): Promise<void> {
      isLossy = false
      if (!way.listening) await once(way.listen(ownPort, '127.0.0.1'), 'listening')
    },
    /** From now on what is asked arrives, and its answer does not. */
    loseAnswers(): void {
      isLossy = true
    },
    /** How many answers were lost. */
    lost: () => lost,
  }
}
export type Path = Awaited<ReturnType<typeof openPath>>
