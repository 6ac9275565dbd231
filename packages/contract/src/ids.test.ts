import type { Uuid } from '@workspace-wallet/contract'
import { describe, expect, test } from 'vitest'
import {
  hasMintedForm,
  type IdKind,
  idFromUuid,
  idPattern,
  idPrefixes,
  looksLikeId,
  mintId,
  uuidFromId,
  uuidRangeOfPrefix,
} from './ids.ts'

const kinds = Object.keys(idPrefixes) as IdKind[]
const noUuid = '00000000-0000-0000-0000-000000000000'
const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

// The last one is the example of the TypeID specification.
test.each([
  [noUuid, '00000000000000000000000000'],
  ['00000000-0000-0000-0000-000000000001', '00000000000000000000000001'],
  ['00000000-0000-0000-0000-00000000000a', '0000000000000000000000000a'],
  ['00000000-0000-0000-0000-000000000020', '00000000000000000000000010'],
  [lastUuid, '7zzzzzzzzzzzzzzzzzzzzzzzzz'],
  ['01890a5d-ac96-774b-bcce-b302099a8057', '01h455vb4pex5vsknk084sn02q'],
])('the UUID %s is the ID wal_%s', (uuid, suffix) => {
  expect(idFromUuid('wallet', uuid as Uuid<'wallet'>)).toBe(`wal_${suffix}`)
  expect(uuidFromId('wallet', `wal_${suffix}`)).toBe(uuid)
})

test.each(kinds)('a new ID of the kind %s is a UUIDv7, of no other kind, and sorts after those before it', kind => {
  const [first, second] = [mintId(kind), mintId(kind)]
  expect(second > first).toBe(true)
  expect(uuidFromId(kind, first)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  for (const other of kinds) expect(uuidFromId(other, first) !== null).toBe(other === kind)
  for (const other of kinds) expect(new RegExp(idPattern(other)).test(first)).toBe(other === kind)
})

test('the last bit of a new UUID is 0 in transfers and 1 in events, so that no event has the UUID of a transfer', () => {
  for (let round = 0; round < 100; round++) {
    expect(uuidFromId('transfer', mintId('transfer'))).toMatch(/[02468ace]$/)
    expect(uuidFromId('event', mintId('event'))).toMatch(/[13579bdf]$/)
  }
  const [even, odd] = ['8056', '8057'].map(end => `01890a5d-ac96-774b-bcce-b302099a${end}`)
  expect(hasMintedForm('transfer', idFromUuid('transfer', even as Uuid<'transfer'>))).toBe(true)
  expect(hasMintedForm('transfer', idFromUuid('transfer', odd as Uuid<'transfer'>))).toBe(false)
  expect(hasMintedForm('event', idFromUuid('event', even as Uuid<'event'>))).toBe(false)
  for (const uuid of [even, odd]) expect(hasMintedForm('hold', idFromUuid('hold', uuid as Uuid<'hold'>))).toBe(true)
})

test.each(kinds)('each new ID of the kind %s has the form of new ones', kind => {
  for (let round = 0; round < 100; round++) expect(hasMintedForm(kind, mintId(kind))).toBe(true)
})

test.each([
  ['nil', noUuid],
  ['of version 4', '01890a5d-ac96-474b-bcce-b302099a8056'],
  ['of another variant', '01890a5d-ac96-774b-ccce-b302099a8056'],
  ['with all bits set', lastUuid],
])('a UUID %s is none of a new ID', (_, uuid) => {
  for (const kind of kinds) expect(hasMintedForm(kind, idFromUuid(kind, uuid as Uuid))).toBe(false)
  expect(hasMintedForm('transfer', uuid)).toBe(false)
})

describe.each([
  ['empty', ''],
  ['without a prefix', '01h455vb4pex5vsknk084sn02q'],
  ['with a prefix only', 'wal_'],
  ['with a prefix in upper case', 'WAL_01h455vb4pex5vsknk084sn02q'],
  ['with a digit in upper case', 'wal_01H455vb4pex5vsknk084sn02q'],
  ['too short', 'wal_01h455vb4pex5vsknk084sn02'],
  ['too long', 'wal_01h455vb4pex5vsknk084sn02q0'],
  ['above 128 bits', 'wal_8zzzzzzzzzzzzzzzzzzzzzzzzz'],
  ['with a letter that Crockford base32 leaves out', 'wal_01h455vb4pex5vsknk084sn02l'],
  ['with a hyphen', 'wal-01h455vb4pex5vsknk084sn02q'],
  ['with a newline at its end', 'wal_01h455vb4pex5vsknk084sn02\n'],
  ['with a letter outside ASCII', 'wal_01h455vb4pex5vsknk084sn0é'],
])('a text %s', (_, text) => {
  test('is not an ID', () => {
    expect(uuidFromId('wallet', text)).toBe(null)
    expect(new RegExp(idPattern('wallet')).test(text)).toBe(false)
  })
})

test.each([
  ['', { from: noUuid, to: lastUuid }],
  ['wa', { from: noUuid, to: lastUuid }],
  ['wal_', { from: noUuid, to: lastUuid }],
  ['wal_7', { from: 'e0000000-0000-0000-0000-000000000000', to: lastUuid }],
  ['wal_01', { from: '01000000-0000-0000-0000-000000000000', to: '01ffffff-ffff-ffff-ffff-ffffffffffff' }],
  [
    'wal_01h455vb4pex5vsknk084sn02q',
    { from: '01890a5d-ac96-774b-bcce-b302099a8057', to: '01890a5d-ac96-774b-bcce-b302099a8057' },
  ],
  ['wal_01h455vb4pex5vsknk084sn02q0', null],
  ['wal_8', null],
  ['wal_u', null],
  ['trf', null],
  ['wal-', null],
])('the wallets whose IDs begin with "%s" have the UUIDs %o', (prefix, range) => {
  expect(uuidRangeOfPrefix('wallet', prefix)).toEqual(range)
})

test.each([
  ['wal_', true],
  ['WAL_01', true],
  ['wal_not-an-id', false],
  ['wal', false],
  ['trf_01', false],
  ['xwal_01', false],
])('whether "%s" looks like the ID of a wallet: %s', (text, looks) => {
  expect(looksLikeId(['hold', 'wallet'], text)).toBe(looks)
})
