-- The checks of section 5.3: key, timestamp, form of the nonce, signature over the hash of the body, claim of the nonce.
-- Calls OpenSSL through LuaJIT's ffi, in the library that nginx is linked with.
local options = ...
local ffi = require 'ffi'
ffi.cdef [[
  unsigned char *SHA256(const unsigned char *data, size_t length, unsigned char *digest);
  const void *EVP_sha256(void);
  unsigned char *HMAC(const void *algorithm, const void *key, int keyLength, const unsigned char *data, size_t length,
    unsigned char *digest, unsigned int *digestLength);
]]
local crypto = ffi.C
local sha256 = crypto.EVP_sha256()
local digest = ffi.new('unsigned char[32]')

local nonceLifeMs = 180000
local windowSeconds = 60

local function hex(bytes)
  return (bytes:gsub('.', function(byte) return string.format('%02x', byte:byte()) end))
end

local function hash(text)
  crypto.SHA256(text, #text, digest)
  return hex(ffi.string(digest, 32))
end
local emptyHash = hash('')

local function sign(secret, message)
  crypto.HMAC(sha256, secret, #secret, message, #message, digest, nil)
  return ngx.encode_base64(ffi.string(digest, 32))
end

local function bodyHash()
  if ngx.req.get_method() == 'GET' then return emptyHash end
  ngx.req.read_body()
  return hash(ngx.req.get_body_data() or '')
end

-- Writes RESP itself, over a kept connection, which takes less time than the packaged client.
local function claim(name)
  local redis = ngx.socket.tcp()
  if not redis:connect('127.0.0.1', options.redisPort) then return nil end
  local command = '*6\r\n$3\r\nSET\r\n$' .. #name .. '\r\n' .. name
    .. '\r\n$0\r\n\r\n$2\r\nNX\r\n$2\r\nPX\r\n$6\r\n' .. nonceLifeMs .. '\r\n'
  if not redis:send(command) then return nil end
  local reply = redis:receive('*l')
  redis:setkeepalive(60000, 256)
  if not reply then return nil end
  return reply == '+OK'
end

local function reject(status, code)
  ngx.status = status
  ngx.header['Content-Type'] = 'application/json'
  ngx.print('{"success":false,"code":"' .. code .. '","data":null}')
  return ngx.exit(status)
end

-- The value of a header, or nil if it is sent twice: then it is a table.
local function single(value)
  return type(value) == 'string' and value or nil
end

return function()
  local headers = ngx.req.get_headers()
  local key = single(headers['x-api-key'])
  if not key then return reject(401, 'GA2001') end
  local secret = options.keys[key]
  if not secret then return reject(401, 'GA2011') end
  local timestamp, nonce = single(headers['x-timestamp']), single(headers['x-nonce'])
  if not timestamp or not timestamp:find('^%d+$') or #timestamp > 10
    or math.abs(tonumber(timestamp) - ngx.time()) > windowSeconds then
    return reject(401, 'GA2013')
  end
  if not nonce or #nonce > 128 or not nonce:find('^[!-~]+$') then return reject(401, 'GA2013') end

  local path = ngx.var.request_uri:match('^[^?]*')
  local message = table.concat({ ngx.req.get_method(), path, timestamp, nonce, bodyHash() }, '\n')
  if sign(secret, message) ~= headers['x-signature'] then return reject(401, 'GA2012') end

  local isNew = claim('nonce:' .. key .. ':' .. nonce)
  if isNew == nil then return reject(503, 'S002') end
  if not isNew then return reject(401, 'GA2013') end
end
