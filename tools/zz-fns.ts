// prints "create or replace function" of the present functions, for a bucket
import { ledgerRows } from '../services/core/src/database/migrations/initial/ledger-rows.ts'
import { holdChanges } from '../services/core/src/database/migrations/initial/hold-changes.ts'
import { limits } from '../services/core/src/database/migrations/initial/limits.ts'
import { posting } from '../services/core/src/database/migrations/initial/posting.ts'
import { audit } from '../services/core/src/database/migrations/initial/audit.ts'
import { statementsOf } from '../services/core/src/database/migrations/statements.ts'
import { inSchema } from '../services/core/src/database/schema.ts'
for (const part of [ledgerRows, holdChanges, limits, posting, audit]) for (const s of statementsOf(inSchema(part, process.argv[2]!))) if (/create function/.test(s)) console.log(s.replace('create function', 'create or replace function') + ';')
