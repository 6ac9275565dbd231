import { createSecretKey, randomBytes } from 'node:crypto'
import { countViolations, listedViolations } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { query } from '../../../../../test/setup/database.ts'
import { books, damage, inCopy, useBooks, verify } from '../../../../../test/setup/verification/copies.ts'

useBooks()

test('an undamaged ledger has no violations, as a whole and for one workspace', () =>
  inCopy(async ({ serviceUrl }) => {
    const sound = {
      ok: true,
      violations: [],
      brokenRules: [],
      notes: [],
    }
    // The workspace of every test system has three wallets and three deposits.
    const all = { workspaces: 6, wallets: 21, transfers: 26, flows: 52, holds: 6, journalEntries: 22 }
    expect(await verify(serviceUrl)).toEqual({ ...sound, ...all })
    const one = await verify(serviceUrl, { workspaceId: books.workspaces.books })
    const ofOne = { workspaces: 1, wallets: 8, transfers: 9, flows: 18, holds: 0, journalEntries: 6 }
    expect(one).toEqual({ ...sound, ...ofOne })
  }))

test('of each rule the first violations are listed, and all are counted', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    const [{ transfers }] = (await query(ownerUrl, 'select count(*)::int as transfers from transfer')) as [
      { transfers: number },
    ]
    await damage(
      ownerUrl,
      `update transfer set amount = amount + 1, source_balance = -1, target_balance = -1, source_order_count = 5,
         target_order_count = 5, currency = 'EUR', created_at = now() - position * interval '1 s',
         order_count = order_count + 100 + position`,
    )
    const { brokenRules, violations } = await verify(serviceUrl)
    // Each flow of each transfer; rules that PostgreSQL and core compute.
    expect(brokenRules).toContainEqual({ rule: 'flow-chain', violations: 2 * transfers })
    expect(brokenRules).toContainEqual({ rule: 'transfer-order-count', violations: transfers })
    expect(2 * transfers).toBeGreaterThan(2 * listedViolations)
    for (const { rule, violations: found } of brokenRules)
      expect(violations.filter(each => each.rule === rule)).toHaveLength(Math.min(found, listedViolations))
  }))

test('with another chain key the report suggests that the key is wrong', () =>
  inCopy(async ({ serviceUrl }) => {
    const report = await verify(serviceUrl, { key: createSecretKey(randomBytes(32)) })
    expect(countViolations(report.brokenRules)).toBeGreaterThan(28)
    const ofFlows = report.violations.filter(({ rule }) => rule === 'flow-chain')
    expect(ofFlows.length).toBeGreaterThan(0)
    for (const { message } of ofFlows) expect(message).toContain('were they posted with another LEDGER_CHAIN_KEY?')
    // Only rules about MACs, the fingerprint of the key, and what no genuine action in the audit explains.
    for (const { rule } of report.violations) expect(rule).toMatch(/-(chain|mac|audit)$|^database-row$/)
  }))
