import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Request, Response } from 'express'

/** A file that the gateway serves unsigned. It does not change while the program runs. */
export class Asset {
  readonly #contentType: string
  readonly #headers: Record<string, string>
  readonly #read: () => Promise<Buffer>
  readonly #encoded = new Map<Encoding, Promise<Encoded>>()

  /**
   * @param read called once, and again after a failure
   * @param headers additional response headers; they override the defaults
   */
  constructor(
    contentType: string,
    read: () => Promise<Buffer>,
    { headers = {} }: { headers?: Record<string, string> } = {},
  ) {
    this.#contentType = contentType
    this.#headers = headers
    this.#read = read
  }

  /** Reads and compresses the file before the first request. After a failure, the first request tries again. */
  async prepare(): Promise<void> {
    await Promise.allSettled(encodings.map(encoding => this.#encode(encoding)))
  }

  /** Answers a GET or HEAD request: 200, or 304 if the client has the current version. */
  async send(request: Request, response: Response): Promise<void> {
    const encoding = chooseEncoding(request)
    const { body, etag } = await this.#encode(encoding)
    const common = {
      ETag: etag,
      'Cache-Control': 'public, max-age=300',
      Vary: 'Accept-Encoding',
      'X-Request-Id': request.requestId,
      'X-Content-Type-Options': 'nosniff',
      ...this.#headers,
    }
    if (isCurrent(request.headers['if-none-match'], etag)) {
      response.writeHead(304, common).end()
      return
    }
    response.writeHead(200, {
      ...common,
      'Content-Type': this.#contentType,
      'Content-Length': body.length,
      ...(encoding !== 'identity' && { 'Content-Encoding': encoding }),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  /** Encodes once, in a thread of the pool. A failure, such as too many open files, is not kept. */
  #encode(encoding: Encoding): Promise<Encoded> {
    let encoded = this.#encoded.get(encoding)
    if (!encoded) {
      encoded = this.#make(encoding)
      encoded.catch(() => this.#encoded.delete(encoding))
      this.#encoded.set(encoding, encoded)
    }
    return encoded
  }

  async #make(encoding: Encoding): Promise<Encoded> {
    const body =
      encoding === 'identity' ? await this.#read() : await compress[encoding]((await this.#encode('identity')).body)
    const digest = createHash('sha256').update(body).digest('base64url').slice(0, 22)
    return { body, etag: `"${digest}"` }
  }
}

/** In order of preference. */
const encodings = ['br', 'gzip'] as const
type Encoding = (typeof encodings)[number] | 'identity'
type Encoded = { body: Buffer; etag: string }

const compress = {
  br: (body: Buffer) =>
    promisify(brotliCompress)(body, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: body.length },
    }),
  gzip: (body: Buffer) => promisify(gzip)(body),
}

/** How long a header may be that is parsed, in characters. It bounds the work for one request. */
export const maxHeaderLength = 1024

function chooseEncoding(request: Request): Encoding {
  if (String(request.headers['accept-encoding']).length > maxHeaderLength) return 'identity'
  return encodings.find(each => request.acceptsEncodings(each)) ?? 'identity'
}

/** Whether an If-None-Match header names this entity tag. Weak and strong tags match (RFC 9110, section 13.1.2). */
function isCurrent(ifNoneMatch = '', etag: string): boolean {
  if (ifNoneMatch.length > maxHeaderLength) return false
  return ifNoneMatch.split(',').some(each => ['*', etag].includes(each.trim().replace(/^W\//, '')))
}
