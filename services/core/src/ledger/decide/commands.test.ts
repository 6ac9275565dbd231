import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { nameOf } from './commands.ts'

test('a name is an ID or a bizId; a text that is neither does not get into a statement', () => {
  const id = mintId('hold')
  expect(nameOf('hold', id)).toEqual({ id: uuidFromId('hold', id) })
  for (const bizId of ['a', 'INV-1:2_3.4', 'x'.repeat(64), mintId('transfer')])
    expect(nameOf('hold', bizId)).toEqual({ bizId })
  for (const text of ['', '-a', 'a b', 'a\u0000', 'x'.repeat(65), '"'.repeat(65_000)])
    expect(nameOf('hold', text)).toEqual({ bizId: '' })
})
