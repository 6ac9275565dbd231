/** An Express program that checks signed requests, and calls the function of pgledger for each transfer. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { serveSigned } from './signed-app.ts'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 })

serveSigned(async (_workspaceId, { sourceWalletId, targetWalletId, amount, currency, bizId }) => {
  const { rows } = await pool.query<{ id: string; created_at: Date }>({
    name: 'transfer',
    text: 'select id, created_at from pgledger_create_transfer($1, $2, $3)',
    values: [sourceWalletId, targetWalletId, amount],
  })
  const { id: transferId, created_at: createdAt } = rows[0]!
  const order = { transferId, bizId: bizId ?? randomUUID(), status: 'COMPLETED', amount, currency }
  return { ...order, sourceWalletId, targetWalletId, createdAt }
})
