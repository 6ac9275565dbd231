// Without modules of Node: see mistakes.ts.

/** X-Nonce: 1 to 128 visible ASCII characters. */
export const noncePattern = /^[!-~]{1,128}$/
/** X-Timestamp: a Unix time in whole seconds. */
export const secondsPattern = /^\d{1,10}$/
/** A Unix time in milliseconds, from 2001 to 2286. */
export const millisecondsPattern = /^[1-9]\d{12}$/
