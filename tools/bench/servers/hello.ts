/** The hello world of Express's documentation. */
import type { AddressInfo } from 'node:net'
import express from 'express'

const app = express()
app.get('/', (_request, response) => {
  response.send('Hello World!')
})
const server = app.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.once('disconnect', () => process.exit(0))
