import { fileURLToPath } from 'node:url'
import { createConfig, lint } from '@redocly/openapi-core'
import { expect, test } from 'vitest'

const document = fileURLToPath(new URL('../../../gateway/openapi.json', import.meta.url))

test('Redocly finds no fault in gateway/openapi.json', async () => {
  const config = await createConfig({
    extends: ['recommended-strict'],
    rules: {
      // The specification fixes these paths. The path `…/orders/wallet/completed` is a wallet's: no bizId is `wallet`.
      'no-ambiguous-paths': 'off',
      'operation-operationId': 'error',
      'operation-singular-tag': 'error',
      'tag-description': 'error',
      'no-invalid-schema-examples': 'error',
      'no-invalid-media-type-examples': 'error',
      'no-unused-components': 'error',
      'path-parameters-defined': 'error',
      'security-defined': 'error',
      'component-name-unique': 'error',
    },
  })
  const problems = await lint({ ref: document, config })
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([])
})
