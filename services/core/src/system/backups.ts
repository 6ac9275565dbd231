import { recordAction } from '../audit/record.ts'
import type { Em } from '../database/orm.ts'

/** Records a backup that was taken in the audit, by its name. */
export function recordBackup(em: Em, actor: string, { name, bytes }: { name: string; bytes: number }): void {
  recordAction(em, { actor, action: 'system.backup', workspaceId: null, target: name, after: { bytes } })
}
