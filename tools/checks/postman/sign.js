// Signs the request: section 5.2 of the specification. Postman and newman both have crypto-js.
const cryptoJs = require('crypto-js')
const { Url } = require('postman-collection')

function variable(name) {
  const value = pm.variables.get(name)
  if (!value) throw new Error(`The variable ${name} is empty: set it in the collection.`)
  return value
}

// Resolved here and sent as it is: the bytes that are hashed are the bytes that are sent.
const body = pm.variables.replaceIn(pm.request.body?.raw ?? '')
if (body) pm.request.body.update({ mode: 'raw', raw: body })

// The path as it is sent, without the query. Postman encodes the same characters.
const path = new Url(pm.variables.replaceIn(pm.request.url.toString()))
  .getPath()
  .replace(/[^!-~]|["<>`{}]/gu, encodeURIComponent)

const timestamp = String(Math.floor(Date.now() / 1000))
const nonce = pm.variables.replaceIn('{{$guid}}')
const message = [pm.request.method, path, timestamp, nonce, cryptoJs.SHA256(body).toString()].join('\n')
const signature = cryptoJs.HmacSHA256(message, variable('apiSecret')).toString(cryptoJs.enc.Base64)

for (const [key, value] of Object.entries({
  'X-Api-Key': variable('apiKey'),
  'X-Timestamp': timestamp,
  'X-Nonce': nonce,
  'X-Signature': signature,
  'X-LOCALE': 'en-US',
}))
  pm.request.headers.upsert({ key, value })
