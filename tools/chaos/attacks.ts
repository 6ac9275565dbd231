/**
 * What attackers send who have little: the ID of an API key without its secret, or the token of a courier. Each attack
 * returns the statuses of the responses, and how many connections were closed without one.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { batchPath, batchProtocol } from '@workspace-wallet/contract'
import { frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'

/** Number of connections by the status of the response; `closed` without one. */
export type Outcomes = Record<string, number>

/** A gateway, and what is known of an API key. */
export type Target = { baseUrl: string; apiKey: string }

type Attack = { connections: number; bytes: number; lines?: string[] }

const batchOfTransfers = '/api/v1/transfer/command/batch'

/** Bodies of chunks of one byte, for which HTTP needs six. `bytes`: of each body. */
export function sendTinyChunks(target: Target, { connections, bytes, lines = [] }: Attack): Promise<Outcomes> {
  const head = headOf(target.apiKey, [...lines, 'Transfer-Encoding: chunked'])
  return attack(target.baseUrl, connections, async socket => {
    socket.write(head)
    await writeRepeatedly(socket, '1\r\nx\r\n', bytes)
    if (socket.writable) socket.write('0\r\n\r\n')
  })
}

/** Bodies whose last byte never comes. `bytes`: of each body. */
export function sendSlowBodies(target: Target, { connections, bytes, lines = [] }: Attack): Promise<Outcomes> {
  const head = headOf(target.apiKey, [...lines, `Content-Length: ${bytes}`])
  return attack(target.baseUrl, connections, async socket => {
    socket.write(head)
    await writeRepeatedly(socket, ' ', bytes - 1)
  })
}

/** Bodies of a batch of calls that are full of empty maps, a byte each. `bytes`: of each body. */
export function sendElementBombs(coreUrl: string, token: string, { connections, bytes }: Attack): Promise<Outcomes> {
  const head = [
    `GET ${batchPath} HTTP/1.1`,
    'Host: core',
    `Authorization: Bearer ${token}`,
    'Connection: Upgrade',
    `Upgrade: ${batchProtocol}`,
  ]
  const emptyMaps = Buffer.alloc(bytes, 0x80)
  // An array of all the maps that follow.
  emptyMaps[0] = 0xdd
  emptyMaps.writeUInt32BE(bytes - 5, 1)
  return attack(coreUrl, connections, async socket => {
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    socket.write(packFrame(frameKinds.batch, 1, emptyMaps))
  })
}

/** The head of a POST that fails at step 6 of section 5.3, so that its body is read. */
function headOf(apiKey: string, lines: string[]): string {
  return [
    `POST ${batchOfTransfers} HTTP/1.1`,
    'Host: gateway',
    `X-Api-Key: ${apiKey}`,
    `X-Timestamp: ${Math.floor(Date.now() / 1000)}`,
    `X-Nonce: ${randomUUID()}`,
    `X-Signature: ${'A'.repeat(43)}=`,
    'Content-Type: application/json',
    ...lines,
    '\r\n',
  ].join('\r\n')
}

async function attack(url: string, connections: number, send: (socket: Socket) => Promise<void>): Promise<Outcomes> {
  const outcomes: Outcomes = {}
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const outcome = await outcomeOf(url, send)
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    }),
  )
  return outcomes
}

/** The status of the first response other than an upgrade, or of the rejection of a batch, after which the connection is closed. */
function outcomeOf(url: string, send: (socket: Socket) => Promise<void>): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise(resolve => {
    let outcome = 'closed'
    const socket = connect(Number(port), hostname, () => void send(socket))
    let text = ''
    socket.on('data', data => {
      text += data.toString('latin1')
      const [, status] =
        /^HTTP\/1\.1 (?!101)(\d{3}) |"status":(\d{3})/.exec(text)?.filter(each => each !== undefined) ?? []
      if (status === undefined) return
      outcome = status
      socket.destroy()
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => resolve(outcome))
  })
}

const blockBytes = 65_536

/** Writes a text many times, as fast as the peer reads. */
async function writeRepeatedly(socket: Socket, text: string, times: number): Promise<void> {
  const perBlock = Math.floor(blockBytes / text.length)
  const block = Buffer.from(text.repeat(perBlock))
  for (let rest = times; rest > 0 && socket.writable; rest -= perBlock) {
    const isFull = !socket.write(rest < perBlock ? block.subarray(0, rest * text.length) : block)
    if (isFull) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
  }
}
