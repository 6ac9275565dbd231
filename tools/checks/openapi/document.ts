import { scopes } from '@workspace-wallet/contract'
import type { z } from 'zod'
import type { Endpoint } from '../../../gateway/src/api/endpoint.ts'
import { endpoints } from '../../../gateway/src/api/endpoints.ts'
import { formatVersion } from '../../../gateway/src/http/envelope.ts'
import { componentSchemas, type JsonSchema, parameterSchema, refTo } from './components.ts'
import { expensiveReads } from './endpoint-errors.ts'
import { templateOf } from './endpoint-paths.ts'
import { commonResponses, failureSchema, headers, responsesOf } from './responses.ts'
import { webhooks } from './webhooks.ts'

/** The text of gateway/openapi.json, generated from the table of endpoints. */
export function openApiDocument(): string {
  return `${JSON.stringify(buildDocument(), withLinksToReference, 2)}\n`
}

/** Links to operations work where the document is shown: they lead to the reference of the service. */
function withLinksToReference(name: string, value: unknown): unknown {
  return name === 'description' && typeof value === 'string' ? value.replaceAll('](#', '](/docs#') : value
}

const description = `Wallets and transfers of a workspace.

Every request is signed with the secret of an API key: the headers \`X-Api-Key\`, \`X-Timestamp\`, \`X-Nonce\` and \`X-Signature\` are all required. \`X-Signature\` is the Base64 of the HMAC-SHA256, under the secret, of five lines joined by a line feed: the method, the path without the query, the timestamp, the nonce, and the SHA-256 of the body in lowercase hexadecimal.

Every response has the same envelope: \`success\`, \`code\`, \`message\` and \`data\`. Ignore fields that you do not know, and treat an unknown error code by its HTTP status. A path or method that is not in this document gets the status 403 and the code \`50090201\`. ${expensiveReads.join(' ')} A load balancer in front of the service can respond with 502 or 504 and \`S003\`.

A POST operation executes a command. If its outcome is unknown (\`S003\`), send it again with the same body: its \`bizId\` prevents a second execution. Operations without a \`bizId\` can be repeated too; each rotation of a webhook's secret gives another secret.`

const tags = {
  wallet: { name: 'Wallets', description: 'Wallets, their balances and their flows.' },
  transfer: { name: 'Transfers', description: 'Transfer orders: single, in batches, and reversals.' },
  hold: { name: 'Holds', description: 'Parts of balances that are reserved until they are captured.' },
  event: { name: 'Events', description: 'The event log of the workspace, without gaps.' },
  webhook: { name: 'Webhooks', description: 'URLs that the service sends events to.' },
}
const eventTag = {
  name: 'Event types',
  description: 'What can happen in a workspace: the records of the event log, and the bodies that webhooks receive.',
}
const tagOf = ({ scope }: Endpoint) => tags[scope.split(':')[0] as keyof typeof tags].name

function buildDocument() {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Workspace Wallet and Transfer API',
      version: formatVersion,
      description,
      contact: { name: 'The operator of the service' },
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: '/' }],
    tags: [...Object.values(tags), eventTag],
    paths: paths(),
    webhooks: webhooks(),
    components: {
      schemas: { ...componentSchemas(), Failure: failureSchema },
      parameters,
      headers,
      responses: commonResponses(),
      securitySchemes,
    },
  }
}

function paths(): Record<string, object> {
  const byPath = Map.groupBy(endpoints, templateOf)
  return Object.fromEntries(
    [...byPath].map(([path, group]) => [
      path,
      Object.fromEntries(group.map(endpoint => [endpoint.method.toLowerCase(), operation(endpoint)])),
    ]),
  )
}

function operation(endpoint: Endpoint) {
  const { operationId, title, description, scope, params, query, body, example } = endpoint
  const pathParameters = Object.entries(params.shape).map(([name, schema]) => ({
    in: 'path',
    name,
    required: true,
    ...described(schema, example.params![name]),
  }))
  const sent = new URLSearchParams(example.query)
  const queryParameters = Object.entries(query?.parameters ?? {}).map(([name, schema]) =>
    name === query!.repeatable
      ? repeatable(name, schema, sent.getAll(name))
      : { in: 'query', name, ...described(schema, sent.get(name) ?? undefined) },
  )
  return {
    operationId,
    tags: [tagOf(endpoint)],
    summary: title,
    description: `${description}\n\nRequires the scope \`${scope}\`.`,
    // Only for OAuth do linters know scopes in the requirement itself.
    'x-required-scope': scope,
    security: [{ ApiKey: [], Timestamp: [], Nonce: [], Signature: [] }],
    parameters: [
      ...pathParameters,
      ...queryParameters,
      ...Object.keys(parameters).map(name => ({ $ref: `#/components/parameters/${name}` })),
    ],
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: refTo(body), example: example.body } },
      },
    }),
    responses: responsesOf(endpoint),
  }
}

/** A parameter's schema, with its description and its recorded text, if there is one, beside it. */
function described(schema: z.ZodType, text?: string): { description?: string; schema: JsonSchema; example?: unknown } {
  const { description, ...rest } = parameterSchema(schema)
  const isNumber = [rest, ...(rest.anyOf ?? [])].some(({ type }) => type === 'integer')
  return {
    ...(description !== undefined && { description }),
    schema: rest,
    ...(text !== undefined && { example: isNumber ? Number(text) : text }),
  }
}

/** A parameter that can be repeated, with different values. */
function repeatable(name: string, schema: z.ZodType, example: string[]) {
  const { description, ...items } = parameterSchema(schema)
  return {
    in: 'query',
    name,
    description,
    style: 'form',
    explode: true,
    schema: { type: 'array', items, uniqueItems: true, ...(items.enum && { maxItems: items.enum.length }) },
    ...(example.length > 0 && { example }),
  }
}

/** Headers of section 5.1 that every request may have. */
const parameters = {
  'X-LOCALE': {
    in: 'header',
    name: 'X-LOCALE',
    description:
      'A language tag, such as `en-US` or `zh-CN`. With it, or else with Accept-Language, a failure has a sentence in `detail` that says what to fix.',
    schema: { type: 'string', maxLength: 64 },
    example: 'en-US',
  },
  'Accept-Language': {
    in: 'header',
    name: 'Accept-Language',
    description: 'The languages of `detail` in order of preference, if there is no X-LOCALE.',
    schema: { type: 'string', maxLength: 1024 },
    example: 'en-US,en;q=0.9',
  },
}

const headerScheme = (name: string, description: string) => ({ type: 'apiKey', in: 'header', name, description })
const securitySchemes = {
  ApiKey: headerScheme(
    'X-Api-Key',
    `The ID of the API key, \`ak_…\`. It belongs to one workspace, and has some of these scopes: ${scopes.map(scope => `\`${scope}\``).join(', ')}.`,
  ),
  Timestamp: headerScheme(
    'X-Timestamp',
    'The current Unix time in whole seconds, at most 60 seconds from the time of the server. Computed for each request.',
  ),
  Nonce: headerScheme(
    'X-Nonce',
    '1 to 128 visible ASCII characters that the key has not sent before, such as a UUID. Computed for each request.',
  ),
  Signature: headerScheme(
    'X-Signature',
    'The padded Base64 of the HMAC-SHA256 of the canonical message, under the secret of the key. Computed for each request.',
  ),
}
