import { type Log, pause } from '@workspace-wallet/runtime'
import pg, { type Client, type ClientBase, type Pool } from 'pg'
import { movedAway } from '../database/errors.ts'
import type { DatabaseHistory } from '../database/history.ts'
import { schemaOf } from '../database/schema.ts'
import { startupOf } from '../database/session-settings.ts'
import { type Queryable, run, statement } from '../database/statement.ts'

/** How often core looks where Citus has a schema. Until it has seen a move, statements go through the former node. */
const intervalMs = 2_000
const connectTimeoutMs = 2_000
/** What PostgreSQL reports where a table of Citus does not exist. */
const undefinedTable = '42P01'

/**
 * The node of Citus that has a schema. All nodes know it. Without Citus, the tables do not exist; without a row, the schema is not
 * distributed.
 */
const findNodeStatement = statement<Node>(
  'find-node',
  `select n.nodename as host, n.nodeport as port
   from pg_catalog.pg_dist_shard s
     join pg_catalog.pg_dist_placement p on p.shardid = s.shardid
     join pg_catalog.pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
   where s.logicalrelid = to_regclass($1)::oid`,
)

type Node = { host: string; port: number }

/**
 * Where a place is. With Citus, its schema is on one node and can be moved to another one; core connects to that node directly. Any
 * node may be in the URL of the place. Without Citus, a place is where its URL leads to, and nothing of this runs after the first look.
 */
export class Placement {
  readonly #configuredUrl: string
  readonly #history: DatabaseHistory
  readonly #log: Log
  #url: string
  /** Null until a database has answered. */
  #isDistributed: boolean | null = null
  #pools: readonly Pool[] = []
  /** The URL that each connection was opened with. */
  readonly #urlOf = new WeakMap<ClientBase, string>()
  #looking: Promise<void> | null = null
  #onMoved = () => {}

  private constructor(configuredUrl: string, history: DatabaseHistory, log: Log) {
    this.#configuredUrl = configuredUrl
    this.#url = configuredUrl
    this.#history = history
    this.#log = log
  }

  /** Finds a place. If its database does not answer now, `follow` looks again. */
  static async find(configuredUrl: string, history: DatabaseHistory, log: Log): Promise<Placement> {
    const placement = new Placement(configuredUrl, history, log)
    try {
      placement.#note(await ask(configuredUrl))
    } catch (error) {
      log.debug({ err: error }, 'the placement is not known yet')
    }
    return placement
  }

  /** The URL of the node that has the place now. */
  get url(): string {
    return this.#url
  }

  /** Notes a new connection of a pool, before anything uses it. */
  admit(client: ClientBase): void {
    if (this.#isDistributed === false) return
    this.#urlOf.set(client, this.#url)
    // Sent by a node that does not have the place any more.
    ;(client as Client).connection.on('errorMessage', ({ code }: { code?: string }) => {
      if (code === movedAway) this.#lookSoon()
    })
  }

  /** Keeps the connections of these pools on the node that has the place. Returns at once without Citus. */
  async follow(pools: readonly Pool[], stopping: AbortSignal, onMoved: () => void): Promise<void> {
    this.#pools = pools
    this.#onMoved = onMoved
    if (this.#isDistributed) for (const pool of pools) this.#watchReleases(pool)
    while (this.#isDistributed !== false && !stopping.aborted) {
      await pause(intervalMs, stopping)
      if (!stopping.aborted) await this.look()
    }
  }

  /** Looks where the place is, and moves the connections there. Never throws. */
  look(): Promise<void> {
    this.#looking ??= this.#lookOnce()
      .catch(error => this.#log.debug({ err: error }, 'the placement could not be read'))
      .finally(() => {
        this.#looking = null
      })
    return this.#looking
  }

  #lookSoon(): void {
    void this.look()
  }

  async #lookOnce(): Promise<void> {
    // The node that has the place answers also while the one of the URL does not, and the other way round.
    const [pool] = this.#pools
    const node = await findNode(pool!, this.#url).catch(() => ask(this.#configuredUrl))
    const before = this.#isDistributed
    if (node && before === null) for (const pool of this.#pools) this.#watchReleases(pool)
    this.#isDistributed = node !== null
    if (node) await this.#moveTo(urlAt(this.#configuredUrl, node))
  }

  #note(node: Node | null): void {
    this.#isDistributed = node !== null
    if (node) this.#url = urlAt(this.#configuredUrl, node)
  }

  async #moveTo(url: string): Promise<void> {
    if (url === this.#url) return
    // It must have all that core has acknowledged.
    await withClient(url, client => this.#history.moveTo(client))
    const { host } = new URL(url)
    this.#log.warn({ from: new URL(this.#url).host, to: host }, 'the place has moved to another node')
    this.#url = url
    for (const pool of this.#pools) {
      pool.options.connectionString = startupOf(url).connectionString
      await closeIdle(pool)
    }
    this.#onMoved()
  }

  /** Closes each connection to a former node as soon as it is returned, so that no statement on it fails. */
  #watchReleases(pool: Pool): void {
    pool.on('release', (_error, client) => {
      if (this.#urlOf.get(client) !== this.#url) void (client as unknown as Client).end()
    })
  }
}

/** Uses each idle connection once: those to a former node are then closed. */
async function closeIdle(pool: Pool): Promise<void> {
  for (let left = pool.idleCount; left > 0 && pool.idleCount > 0; left--) (await pool.connect()).release()
}

function ask(url: string): Promise<Node | null> {
  return withClient(url, client => findNode(client, url))
}

/** @returns null without Citus, and for a schema that is not distributed */
async function findNode(db: Queryable, url: string): Promise<Node | null> {
  try {
    const [node] = await run(db, findNodeStatement, [`${schemaOf(url)}.ledger`])
    return node ?? null
  } catch (error) {
    if ((error as { code?: unknown }).code === undefinedTable) return null
    throw error
  }
}

async function withClient<Result>(url: string, action: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({
    ...startupOf(url),
    application_name: 'core placement',
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return await action(client)
  } finally {
    void client.end().catch(() => {})
  }
}

function urlAt(configuredUrl: string, { host, port }: Node): string {
  const url = new URL(configuredUrl)
  url.host = host.includes(':') ? `[${host}]` : host
  url.port = String(port)
  // Citus cannot make the plan of some statements for any value.
  const options = url.searchParams.get('options') ?? ''
  url.searchParams.set('options', `${options} -c plan_cache_mode=auto`.trim())
  return url.href
}
