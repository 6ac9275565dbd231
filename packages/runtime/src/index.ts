/** What core, gateway and `npm start` share: configuration, logging, secrets, key IDs, suggestions. */
export * from './create-log.ts'
export * from './environment.ts'
export * from './key-ids.ts'
export * from './log.ts'
export * from './log-output.ts'
export * from './nearest.ts'
export * from './secrets.ts'
