import { maxHeldLeases } from '@workspace-wallet/contract'
import { allowedNetworks, coreUrls, port, readEnvironment, wholeNumber } from '@workspace-wallet/runtime'
import { tracingVariables } from '@workspace-wallet/runtime/start-tracing'
import { z } from 'zod'

export const courierSchema = z.object({
  CORE_TOKEN: z.string().min(32, 'must have 32 characters or more').describe('Service token with the role courier'),
  CORE_URL: coreUrls,
  COURIER_ATTEMPTS: wholeNumber(1, maxHeldLeases)
    .default(256)
    .describe(
      'Maximum number of deliveries in progress at a time. One workspace uses at most an eighth of it, and less while others have deliveries in progress, but at least one',
    ),
  INTERNAL_HOST: z.string().default('127.0.0.1').describe('Address of the listener with metrics and readiness'),
  INTERNAL_PORT: port.default(8083).describe('Port of the listener with metrics and readiness'),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level that is logged'),
  ...tracingVariables,
  WEBHOOK_ALLOWED_NETWORKS: allowedNetworks,
})
export type CourierConfig = z.infer<typeof courierSchema>

/** The courier's configuration, from the environment. @throws ConfigurationError */
export const courierConfig = (): CourierConfig => readEnvironment(courierSchema, process.env)
