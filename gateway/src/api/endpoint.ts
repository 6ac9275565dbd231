import type { IncomingMessage } from 'node:http'
import type { Scope } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { z } from 'zod'
import { type BodySchema, parseJsonBody } from './json-body.ts'
import { type ListParameters, type ListQuerySchema, parseListQuery } from './list-query.ts'

/** Whose call it is: the workspace of the key, and on whose behalf it is made. */
type RequestContext = {
  core: CoreClient
  on: { workspaceId: string; caller: { apiKey: string; requestId: string; address: string } }
}

/** An authenticated call as it arrived. */
export type EndpointRequest = RequestContext & {
  params: Record<string, string>
  query: string
  request: IncomingMessage
  body: Buffer
}

/** One path parameter by name. */
type Params = z.ZodObject<Record<string, z.ZodString>>

/** An endpoint of section 4, reached only with the scope that it declares. docs/api.md is generated from it. */
export type Endpoint = {
  title: string
  method: 'GET' | 'POST'
  path: string
  scope: Scope
  params: Params
  /** Of lists. Other endpoints ignore the query. */
  query?: ListQuerySchema
  /** Of POST. Other endpoints ignore the body. */
  body?: BodySchema
  /** `data` of the success envelope. */
  answer: z.ZodType
  /** A recorded call. `query` and `body` are what was sent, `data` what was answered. */
  example: { params?: Record<string, string>; query?: string; body?: unknown; data: unknown }
  /** Parses the call, and returns `data`. */
  handle: (call: EndpointRequest) => Promise<unknown>
}

type Declared<ParamsSchema, Answer, Parsed> = Pick<Endpoint, 'title' | 'path' | 'scope' | 'example'> & {
  params: ParamsSchema
  answer: Answer
  handle: (call: RequestContext & { params: z.output<ParamsSchema> } & Parsed) => Promise<z.output<Answer>>
}

/** GET of one record. */
export function getEndpoint<const P extends Params, const A extends z.ZodType>(
  declared: Declared<P, A, unknown>,
): Endpoint {
  const { params, handle } = declared
  return {
    ...declared,
    method: 'GET',
    handle: call => handle({ core: call.core, on: call.on, params: params.parse(call.params) }),
  }
}

/** GET of a page. */
export function listEndpoint<const P extends Params, const Q extends ListQuerySchema, const A extends z.ZodType>(
  declared: Declared<P, A, { list: ListParameters<Q> }> & { query: Q },
): Endpoint {
  const { params, query, handle } = declared
  return {
    ...declared,
    method: 'GET',
    handle: async call => {
      const request = parseListQuery(call.query, query)
      return handle({ core: call.core, on: call.on, params: params.parse(call.params), list: request })
    },
  }
}

/** POST of a body. */
export function postEndpoint<const P extends Params, const B extends BodySchema, const A extends z.ZodType>(
  declared: Declared<P, A, { body: z.output<B> }> & { body: B },
): Endpoint {
  const { params, body: schema, handle } = declared
  return {
    ...declared,
    method: 'POST',
    handle: async call => {
      const body = parseJsonBody(schema, call.request, call.body)
      return handle({ core: call.core, on: call.on, params: params.parse(call.params), body })
    },
  }
}
