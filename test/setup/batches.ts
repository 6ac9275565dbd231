/** Connections for batches of calls, frame by frame: for what our client does not send, and for cores of tests. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import {
  type BatchAnswer,
  type BatchCall,
  type BatchPart,
  batchPath,
  batchProtocol,
  packBatch,
  unpackBatch,
} from '@workspace-wallet/contract'
import { acceptUpgrade, detachUpgrade } from '@workspace-wallet/runtime'
import { type FrameHead, FrameReader, frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { openConnection, requestText } from './raw-http.ts'

/** The request that opens a connection for batches. */
export function upgradeText(token: string, path: string = batchPath): string {
  return requestText('GET', path, { Authorization: `Bearer ${token}`, Connection: 'Upgrade', Upgrade: batchProtocol })
}

/**
 * `status`: 200 or that of a rejection; 0 if the connection was closed without an answer. `body`: all answers in the order of the
 * calls. `parts`: the indexes of calls whose answers came before, by frame.
 */
export type BatchResult = { status: number; body: Buffer; parts: number[][] }

export type BatchConnection = {
  socket: Socket
  /** The HTTP status of the answer to the upgrade, and what followed it if it was refused. */
  status: number
  text: string
  /** Frames that are no answers. */
  others: FrameHead[]
  /** Sends a batch, in whatever form. */
  send(body: Uint8Array): Promise<BatchResult>
  /** Waits for the answer to a batch whose frame the test writes itself. */
  expect(id: number): Promise<BatchResult>
  /** How many calls of the batches in progress have answers in parts. */
  readonly partlyAnswered: number
}

/** Opens a connection for batches. */
export async function openBatches(url: string, token: string, path?: string): Promise<BatchConnection> {
  const socket = await openConnection(url)
  socket.on('error', () => {})
  const waiting = new Map<number, (result: BatchResult) => void>()
  const parts = new Map<number, BatchPart[]>()
  const others: FrameHead[] = []
  const reader = new FrameReader({
    onHead(head) {
      const isAnswer = ([frameKinds.answers, frameKinds.part, frameKinds.rejection] as number[]).includes(head.kind)
      if (!isAnswer) others.push(head)
      return isAnswer
    },
    onFrame({ kind, id }, body) {
      const before = parts.get(id) ?? []
      if (kind === frameKinds.part) return void parts.set(id, [...before, unpackBatch(body) as BatchPart])
      const status = kind === frameKinds.answers ? 200 : (JSON.parse(body.toString()) as { status: number }).status
      const all = before.length > 0 && status === 200 ? withParts(before, body) : body
      waiting.get(id)?.({ status, body: all, parts: before.map(({ calls }) => calls) })
      waiting.delete(id)
      parts.delete(id)
    },
  })
  socket.on('close', () => {
    for (const resolve of waiting.values()) resolve(withoutAnswer)
  })
  socket.write(upgradeText(token, path))
  const text = await headOf(socket, reader)
  let lastId = 0
  const wait = (id: number) =>
    new Promise<BatchResult>(resolve => {
      if (socket.destroyed) resolve(withoutAnswer)
      else waiting.set(id, resolve)
    })
  return {
    socket,
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0),
    text,
    others,
    expect: wait,
    get partlyAnswered() {
      return [...parts.values()].flat().reduce((sum, { calls }) => sum + calls.length, 0)
    },
    send(body) {
      socket.write(packFrame(frameKinds.batch, ++lastId, body))
      return wait(lastId)
    },
  }
}

const withoutAnswer: BatchResult = { status: 0, body: Buffer.alloc(0), parts: [] }

/** All answers, in the order of the calls. */
function withParts(parts: BatchPart[], rest: Buffer): Buffer {
  const answers: BatchAnswer[] = []
  for (const part of parts) for (const [at, call] of part.calls.entries()) answers[call] = part.answers[at]!
  const others = unpackBatch(rest) as BatchAnswer[]
  const count = parts.flatMap(({ calls }) => calls).length + others.length
  return packBatch(Array.from({ length: count }, (_, at) => answers[at] ?? others.shift()!))
}

/** Reads the head of the response; `reader` gets what follows 101. A refusal is read until the connection ends. */
function headOf(socket: Socket, reader: FrameReader): Promise<string> {
  return new Promise(resolve => {
    let received = Buffer.alloc(0)
    const read = (piece: Buffer) => {
      received = Buffer.concat([received, piece])
      const end = received.indexOf('\r\n\r\n')
      if (end < 0 || !received.toString('latin1').startsWith('HTTP/1.1 101 ')) return
      socket.off('data', read)
      socket.on('data', next => reader.push(next))
      reader.push(received.subarray(end + 4))
      resolve(received.toString('latin1', 0, end))
    }
    socket.on('data', read)
    socket.on('close', () => resolve(received.toString()))
  })
}

/** Sends one batch on a connection of its own. `status` is that of the refused connection, if it was. */
export async function sendBatch(url: string, token: string, body: Uint8Array): Promise<BatchResult> {
  const connection = await openBatches(url, token)
  if (connection.status !== 101)
    return { ...withoutAnswer, status: connection.status, body: Buffer.from(connection.text) }
  const result = await connection.send(body)
  connection.socket.destroy()
  return result
}

/** A batch that a core of a test has received. */
export type ReceivedBatch = {
  calls: BatchCall[]
  socket: Socket
  /** Sends what an honest core would, or something else. */
  reply(answers: BatchAnswer[] | Uint8Array): void
  /** Answers some calls, by their index. */
  replyPart(part: BatchPart): void
  reject(status: number): void
}

/** Makes a server accept connections for batches, as core does. */
export function serveBatches(server: Server, onBatch: (batch: ReceivedBatch, body: Buffer) => void): void {
  const sockets = new Set<Socket>()
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    detachUpgrade(socket)
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    if (request.url !== batchPath) return socket.destroy()
    acceptUpgrade(socket, batchProtocol)
    const reader = new FrameReader({
      onHead({ kind, id }) {
        if (kind === frameKinds.ping) socket.write(packFrame(frameKinds.pong, id))
        return kind === frameKinds.batch
      },
      onFrame({ id }, body) {
        const calls = unpackBatch(body) as BatchCall[]
        const reply = (answers: BatchAnswer[] | Uint8Array) =>
          socket.write(packFrame(frameKinds.answers, id, Array.isArray(answers) ? packBatch(answers) : answers))
        const replyPart = (part: BatchPart) => socket.write(packFrame(frameKinds.part, id, packBatch(part)))
        const reject = (status: number) =>
          socket.write(packFrame(frameKinds.rejection, id, Buffer.from(JSON.stringify({ status }))))
        onBatch({ calls, socket, reply, replyPart, reject }, body)
      },
    })
    reader.push(head)
    socket.on('data', piece => reader.push(piece))
  })
  // The server does not know these connections, and would wait for them.
  const { close } = server
  server.close = callback => {
    for (const socket of sockets) socket.destroy()
    return close.call(server, callback)
  }
}
