import type { IncomingHttpHeaders } from 'node:http'
import type { Scope } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { z } from 'zod'
import { type BodySchema, parseJsonBody } from './json-body.ts'
import { type ListParameters, type ListQuerySchema, parseListQuery } from './list-query.ts'

/** What a handler needs: the client of core, and the workspace and caller of the request. */
type RequestContext = {
  core: CoreClient
  on: { workspaceId: string; caller: { apiKey: string; requestId: string; address: string } }
}

/** An authenticated request before its parameters are parsed. */
export type EndpointRequest = RequestContext & {
  params: Record<string, string>
  query: string
  headers: IncomingHttpHeaders
  body: Buffer
}

/** The path parameters. */
type Params = z.ZodObject<Record<string, z.ZodString>>

/** An endpoint of section 4. It requires the scope that it declares. docs/api.md is generated from it. */
export type Endpoint = {
  title: string
  method: 'GET' | 'POST'
  path: string
  scope: Scope
  params: Params
  /** For lists. Other endpoints ignore the query. */
  query?: ListQuerySchema
  /** For POST. Other endpoints ignore the body. */
  body?: BodySchema
  /** `data` of the success envelope. */
  answer: z.ZodType
  /** A recorded request, and the `data` of its answer. */
  example: { params?: Record<string, string>; query?: string; body?: unknown; data: unknown }
  /** Handles a request, and returns `data`. @throws DomainError */
  handle: (request: EndpointRequest) => Promise<unknown>
}

type Declared<ParamsSchema, Answer, Parsed> = Pick<Endpoint, 'title' | 'path' | 'scope' | 'example'> & {
  params: ParamsSchema
  answer: Answer
  handle: (request: RequestContext & { params: z.output<ParamsSchema> } & Parsed) => Promise<z.output<Answer>>
}

/** A GET endpoint that returns one record. */
export function getEndpoint<const P extends Params, const A extends z.ZodType>(
  declared: Declared<P, A, unknown>,
): Endpoint {
  const { params: paramsSchema, handle } = declared
  return {
    ...declared,
    method: 'GET',
    handle: ({ core, on, params }) => handle({ core, on, params: paramsSchema.parse(params) }),
  }
}

/** A GET endpoint that returns a page. */
export function listEndpoint<const P extends Params, const Q extends ListQuerySchema, const A extends z.ZodType>(
  declared: Declared<P, A, { list: ListParameters<Q> }> & { query: Q },
): Endpoint {
  const { params: paramsSchema, query: querySchema, handle } = declared
  return {
    ...declared,
    method: 'GET',
    handle: async ({ core, on, params, query }) => {
      const list = parseListQuery(query, querySchema)
      return handle({ core, on, params: paramsSchema.parse(params), list })
    },
  }
}

/** A POST endpoint with a body. */
export function postEndpoint<const P extends Params, const B extends BodySchema, const A extends z.ZodType>(
  declared: Declared<P, A, { body: z.output<B> }> & { body: B },
): Endpoint {
  const { params: paramsSchema, body: bodySchema, handle } = declared
  return {
    ...declared,
    method: 'POST',
    handle: async ({ core, on, params, headers, body }) =>
      handle({ core, on, params: paramsSchema.parse(params), body: parseJsonBody(bodySchema, headers, body) }),
  }
}
