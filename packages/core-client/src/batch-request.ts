import type { Dispatcher } from 'undici'

/**
 * One HTTP request with a batch, and its response. It handles undici's `dispatch` itself, because `request` creates a
 * stream, an async resource and an abort listener for each response: 6 % of a gateway's CPU time (docs/decisions/0013).
 */
export class BatchRequest implements Dispatcher.DispatchHandler {
  /** The status of the response, once `body` has settled. */
  status = 0
  readonly #body = Promise.withResolvers<Buffer>()
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #abortReason: Error | undefined

  /** The whole body of the response. Rejects with the error of undici, or with the reason of `abort`. */
  get body(): Promise<Buffer> {
    return this.#body.promise
  }

  /** Closes the connection if the request was sent. A response that has arrived already stays. */
  abort(reason: Error): void {
    this.#abortReason = reason
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#abortReason) controller.abort(this.#abortReason)
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.status = status
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    this.#body.resolve(this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks))
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#body.reject(error)
  }
}
