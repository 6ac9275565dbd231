/** The hello world of Express's documentation. */
import type { AddressInfo } from 'node:net'
import express from 'express'

const app = express()
app.get('/', (_request, response) => {
  response.send('Hello World!')
})
const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
// Not process.exit(), which can hang: see packages/runtime/src/end-program.ts.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
