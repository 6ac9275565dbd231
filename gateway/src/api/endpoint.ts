import type { IncomingHttpHeaders } from 'node:http'
import type { ErrorCode, Scope } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { z } from 'zod'
import { issueFault } from './field-fault.ts'
import { type BodySchema, parseJsonBody } from './json-body.ts'
import type { JsonText } from './json-text.ts'
import {
  type ListParameters,
  type ListQuerySchema,
  parseListQuery,
  parseQuery,
  type QueryParameters,
  type QuerySchema,
} from './list-query.ts'

/** What a handler needs: the client of core, and the workspace and caller of the request. */
type RequestContext = {
  core: CoreClient
  on: { workspaceId: string; caller: { apiKey: string; requestId: string; address: string } }
  /**
   * @param index the place of the item of a batch that needs the scope
   * @throws DomainError GA2024 if the key lacks a scope that only some requests of the endpoint require
   */
  requireScope: (scope: Scope, index?: number) => void
}

/** An authenticated request before its parameters are parsed. */
export type EndpointRequest = RequestContext & {
  params: Record<string, string>
  query: string
  headers: IncomingHttpHeaders
  body: Buffer
}

/** The path parameters. Their error messages are FieldReasons. */
type Params = z.ZodObject<Record<string, z.ZodType<unknown, string>>>

/** An endpoint of section 4. It requires the scope that it declares. docs/api.md and gateway/openapi.json are generated from it. */
export type Endpoint = {
  /** The name of the operation in gateway/openapi.json, and so of the functions of generated clients. */
  operationId: string
  title: string
  /** What it does and when to use it, in Markdown: see descriptions.ts. */
  description: string
  method: 'GET' | 'POST'
  path: string
  scope: Scope
  params: Params
  /** Endpoints without it ignore the query. */
  query?: QuerySchema
  /** For POST. Other endpoints ignore the body. */
  body?: BodySchema
  /** Raises the limit of the operator, in bytes. */
  bodyLimitBytes?: number
  /** The error codes of the endpoint itself, besides those that every endpoint of its kind can return. */
  errors: readonly ErrorCode[]
  /** `data` of the success envelope. */
  answer: z.ZodType
  /** A recorded request, and the `data` of its response. */
  example: { params?: Record<string, string>; query?: string; body?: unknown; data: unknown }
  /** Handles a request, and returns `data`. @throws DomainError */
  handle: (request: EndpointRequest) => Promise<unknown>
}

type Declared<ParamsSchema, Answer, Parsed> = Pick<
  Endpoint,
  'operationId' | 'title' | 'description' | 'path' | 'scope' | 'errors' | 'example'
> & {
  params: ParamsSchema
  answer: Answer
  handle: (
    request: RequestContext & { params: z.output<ParamsSchema> } & Parsed,
  ) => Promise<z.output<Answer> | JsonText>
}

/** A GET endpoint that returns one record. */
export function getEndpoint<const P extends Params, const A extends z.ZodType>(
  declared: Declared<P, A, unknown>,
): Endpoint {
  return parsedEndpoint('GET', declared, () => ({}))
}

/** A GET endpoint with a query. */
export function queryEndpoint<const P extends Params, const Q extends QuerySchema, const A extends z.ZodType>(
  declared: Declared<P, A, { query: QueryParameters<Q> }> & { query: Q },
): Endpoint {
  return parsedEndpoint('GET', declared, ({ query }) => ({ query: parseQuery(query, declared.query) }))
}

/** A GET endpoint that returns a page. */
export function listEndpoint<const P extends Params, const Q extends ListQuerySchema, const A extends z.ZodType>(
  declared: Declared<P, A, { list: ListParameters<Q> }> & { query: Q },
): Endpoint {
  return parsedEndpoint('GET', declared, ({ query }) => ({ list: parseListQuery(query, declared.query) }))
}

/** A POST endpoint with a body. */
export function postEndpoint<const P extends Params, const B extends BodySchema, const A extends z.ZodType>(
  declared: Declared<P, A, { body: z.output<B> }> & { body: B } & Pick<Endpoint, 'bodyLimitBytes'>,
): Endpoint {
  return parsedEndpoint('POST', declared, ({ headers, body }) => ({
    body: parseJsonBody(declared.body, headers, body),
  }))
}

/** Parses the path parameters, and then what else the handler takes. */
function parsedEndpoint<P extends Params, A extends z.ZodType, Parsed>(
  method: Endpoint['method'],
  declared: Declared<P, A, Parsed>,
  parse: (request: EndpointRequest) => Parsed,
): Endpoint {
  return {
    ...declared,
    method,
    handle: async request => {
      const { core, on, requireScope } = request
      const params = parseParams(declared.params, request.params)
      return declared.handle({ core, on, requireScope, params, ...parse(request) })
    },
  }
}

/** @throws DomainError S012 for the first invalid parameter */
function parseParams<P extends Params>(schema: P, params: Record<string, string>): z.output<P> {
  const result = schema.safeParse(params)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  throw issueFault(String(issue.path[0]), issue)
}
