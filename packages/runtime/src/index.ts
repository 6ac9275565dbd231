/** What our programs share and no caller sees: configuration, logging, keys. */
export * from './create-log.ts'
export * from './environment.ts'
export * from './key-ids.ts'
export * from './log.ts'
export * from './log-output.ts'
export * from './secrets.ts'
