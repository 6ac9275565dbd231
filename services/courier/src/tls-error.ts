/** Why a connection to a receiver ends that sends what no receiver needs. */
type TlsErrorCode =
  | 'ERR_TLS_HANDSHAKE_TOO_LARGE'
  | 'ERR_TLS_RENEGOTIATION'
  | 'ERR_TLS_TOO_MANY_TICKETS'
  | 'ERR_TLS_UNREADABLE_HANDSHAKE'
  | 'ERR_TLS_UNSUPPORTED_KEY'

export class TlsError extends Error {
  readonly code: TlsErrorCode

  constructor(code: TlsErrorCode) {
    super(`the receiver was disconnected: ${code}`)
    this.code = code
  }
}
