import {
  amountText,
  batchItem,
  changeWalletStatusBody,
  createBatchBody,
  createHoldBody,
  createItem,
  createTransferBody,
  createWalletBody,
  createWebhookBody,
  currencyDecimals,
  deleteWebhookBody,
  pageMetadata,
  releaseHoldBody,
  reverseTransferBody,
  rotateWebhookBody,
  seekWebhookBody,
  updateWebhookBody,
} from '@workspace-wallet/contract'
import { z } from 'zod'
import * as records from '../../../gateway/src/api/records.ts'

export type JsonSchema = z.core.JSONSchema.JSONSchema

/** The names of schemas in the document. Generated clients use them as names of types. */
const recordNames = new Map<z.ZodType, string>([
  [records.walletAnswer, 'Wallet'],
  [records.walletPageAnswer, 'WalletPage'],
  [records.balanceAnswer, 'Balance'],
  [records.balanceAtAnswer, 'BalanceAt'],
  [records.statementAnswer, 'WalletStatement'],
  [records.flowAnswer, 'Flow'],
  [records.flowPageAnswer, 'FlowPage'],
  [records.orderAnswer, 'TransferOrder'],
  [records.orderPageAnswer, 'TransferOrderPage'],
  [records.batchAnswer, 'TransferBatch'],
  [records.completionAnswer, 'TransferCompletion'],
  [records.receiptAnswer, 'TransferReceipt'],
  [records.holdAnswer, 'Hold'],
  [records.holdPageAnswer, 'HoldPage'],
  [pageMetadata, 'PageMetadata'],
  [records.eventAnswer, 'Event'],
  ...Object.entries(records.eventAnswers).map(([type, schema]): [z.ZodType, string] => [schema, nameOfEvent(type)]),
  [records.eventPageAnswer, 'EventPage'],
  [records.completedOrderAnswer, 'CompletedTransfer'],
  [records.fundingAnswer, 'Funding'],
  [records.balanceAfterAnswer, 'BalanceAfter'],
  [records.walletChangeAnswer, 'WalletChange'],
  [records.webhookAnswer, 'Webhook'],
  [records.webhookPageAnswer, 'WebhookPage'],
  [records.issuedWebhookAnswer, 'IssuedWebhook'],
  [records.rotatedWebhookAnswer, 'RotatedWebhook'],
  [records.deletedWebhookAnswer, 'DeletedWebhook'],
])
const bodyNames = new Map<z.ZodType, string>([
  [amountText, 'Amount'],
  [createTransferBody, 'CreateTransfer'],
  [createItem, 'CreateTransferItem'],
  [reverseTransferBody, 'ReverseTransfer'],
  [createBatchBody, 'CreateTransferBatch'],
  [createHoldBody, 'CreateHold'],
  [releaseHoldBody, 'ReleaseHold'],
  [createWalletBody, 'CreateWallet'],
  [changeWalletStatusBody, 'ChangeWalletStatus'],
  [createWebhookBody, 'CreateWebhook'],
  [updateWebhookBody, 'UpdateWebhook'],
  [rotateWebhookBody, 'RotateWebhook'],
  [seekWebhookBody, 'SeekWebhook'],
  [deleteWebhookBody, 'DeleteWebhook'],
])

/** `TransferCompletedEvent` for `transfer.completed`. */
function nameOfEvent(type: string): string {
  return `${type.replace(/(?:^|\.)(\w)/g, (_, letter: string) => letter.toUpperCase())}Event`
}

/** A reference to the component of a schema. */
export function refTo(schema: z.ZodType): JsonSchema {
  const name = recordNames.get(schema) ?? bodyNames.get(schema)
  if (!name)
    throw new Error('A schema has no name in the OpenAPI document: add it to tools/checks/openapi/components.ts.')
  return { $ref: uriOf(name) }
}

function uriOf(name: string): string {
  return `#/components/schemas/${name}`
}

/** The named schemas. Clients must ignore fields that they do not know, so only bodies exclude additional ones. */
export function componentSchemas(): Record<string, JsonSchema> {
  return {
    ...schemasOf(recordNames, ({ jsonSchema }) => delete jsonSchema.additionalProperties),
    ...schemasOf(bodyNames, () => {}),
    Currency: {
      type: 'string',
      enum: [...currencyDecimals.keys()],
      description: 'Currency code, upper case: ISO 4217 and the common crypto assets.',
    },
  }
}

type Override = NonNullable<Parameters<typeof z.toJSONSchema>[1]>['override'] & {}

function schemasOf(names: Map<z.ZodType, string>, override: Override): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>()
  for (const [schema, id] of names) registry.add(schema, { id })
  const options = { ...optionsWith(override), uri: uriOf, metadata: z.globalRegistry }
  const { schemas } = z.toJSONSchema(registry, options)
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutIdentity(schema)]))
}

/** The schema of a parameter, as its text. */
export function parameterSchema(schema: z.ZodType): JsonSchema {
  return withoutIdentity(
    z.toJSONSchema(
      schema,
      optionsWith(() => {}),
    ),
  )
}

function withoutIdentity({ $schema: _, $id: __, ...schema }: JsonSchema & { $id?: string }): JsonSchema {
  return schema
}

/** Bodies and parameters are documented as clients send them. */
function optionsWith(override: Override) {
  return {
    io: 'input',
    unrepresentable: 'any',
    override(context: Parameters<Override>[0]): void {
      const { jsonSchema, zodSchema } = context
      if ((zodSchema as unknown) === batchItem._zod.def.in) {
        jsonSchema.anyOf = [refTo(createItem), refTo(reverseTransferBody)]
      } else if (zodSchema instanceof z.ZodDiscriminatedUnion) {
        jsonSchema.discriminator = { propertyName: 'type', mapping: eventMapping }
      } else if (jsonSchema.enum?.length === currencyDecimals.size) {
        delete jsonSchema.type
        delete jsonSchema.enum
        jsonSchema.$ref = uriOf('Currency')
      } else if (jsonSchema.type === 'integer') {
        // The pattern of its text.
        delete jsonSchema.pattern
      }
      // zod leaves it out, as the default of what the text is transformed to.
      const { default: byDefault } = z.globalRegistry.get(zodSchema) ?? {}
      if (byDefault !== undefined) jsonSchema.default = byDefault as number
      override(context)
    },
  } as const
}

const eventMapping = Object.fromEntries(Object.keys(records.eventAnswers).map(type => [type, uriOf(nameOfEvent(type))]))
