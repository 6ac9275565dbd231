import { idFromUuid, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { hasKeyIdChecksum, mintKeyId } from './key-ids.ts'

const apiKey = mintKeyId('checksum key')
const uuid = uuidFromId('apiKey', apiKey)!

test('a new ID has a checksum, and is a UUIDv7', () => {
  expect(hasKeyIdChecksum('checksum key', apiKey)).toBe(true)
  expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
})

test.each([
  ['made with another key', mintKeyId('other')],
  ['without a checksum', mintId('apiKey')],
  [
    'with another time',
    idFromUuid('apiKey', uuid.replace(/^./, first => (first === '0' ? '1' : '0')) as Uuid<'apiKey'>),
  ],
  [
    'with another last digit',
    idFromUuid('apiKey', uuid.replace(/.$/, last => (last === '0' ? '1' : '0')) as Uuid<'apiKey'>),
  ],
  ['of another kind', idFromUuid('wallet', uuid)],
  ['that is malformed', `${apiKey}0`],
  ['that is empty', ''],
])('an ID %s is not genuine', (_, id) => {
  expect(hasKeyIdChecksum('checksum key', id)).toBe(false)
})
