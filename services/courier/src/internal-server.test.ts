import { Gauge, Registry } from 'prom-client'
import { afterEach, test, vi } from 'vitest'
import { expectUnreadClosed } from '../../../test/setup/unread-answers.ts'
import { createInternalServer } from './internal-server.ts'

afterEach(() => vi.useRealTimers())

test('a client of the internal listener that does not read its answer is disconnected', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const registry = new Registry()
  new Gauge({ name: 'large', help: 'x'.repeat(16 * 2 ** 20), registers: [registry] })
  const server = createInternalServer(registry, async () => ({ status: 'ready', checks: {} }) as never)
  await expectUnreadClosed(server)
})
