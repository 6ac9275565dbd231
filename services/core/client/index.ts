export { type CoreClient, type CoreClientOptions, createCoreClient } from './core-client.ts'
export { CoreUnreachable } from './link.ts'
export { sealLines } from './seal.ts'
export { reopenLedger, type VerifyProgress, verifyLedger } from './verify.ts'
