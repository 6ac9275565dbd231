/**
 * PostgreSQL refuses to run as root. When we are root (a container, say) it runs as another user, which must still
 * reach its binaries and its data although a directory above them, such as /root, may be closed to it.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export interface Identity {
  user: string
  uid: number
  gid: number
  /** Put before the command; empty when the operating system lets that user in anyway. */
  prefix: string[]
}

export interface RunAs {
  command: string
  args: string[]
  uid?: number | undefined
  gid?: number | undefined
}

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

export function runAs(identity: Identity | undefined, command: string, args: string[]): RunAs {
  if (identity === undefined) return { command, args }
  const [wrapper, ...options] = identity.prefix
  if (wrapper === undefined) return { command, args, uid: identity.uid, gid: identity.gid }
  return { command: wrapper, args: [...options, command, ...args] }
}

/**
 * The user to run as: the one who owns the data already, else `postgres`, else `nobody`; and the way to do it that can
 * enter `directories` and execute `programs`.
 */
export async function chooseIdentity(
  owner: { uid: number; gid: number } | undefined,
  programs: string[],
  directories: string[],
): Promise<Identity> {
  const account = owner ? { user: `user ${owner.uid}`, ...owner } : await findAccount(['postgres', 'nobody'])
  for (const prefix of waysToBecome(account)) {
    const identity = { ...account, prefix }
    if (await canReach(identity, [...programs, ...directories])) return identity
  }
  throw new Error(
    `PostgreSQL does not run as root, and ${account.user} cannot enter ${directories[0]} or run ${programs[0]}: ` +
      'start as an ordinary user, or install setpriv (util-linux), or move the checkout and DATA_DIR to a directory open to all.',
  )
}

/**
 * First plainly; then by setpriv with one capability kept: to read and enter any directory, or, where a container
 * withholds that one, to override file permissions.
 */
function waysToBecome(account: { uid: number; gid: number }): string[][] {
  const keeping = (capability: string) => [
    'setpriv',
    `--reuid=${account.uid}`,
    `--regid=${account.gid}`,
    '--clear-groups',
    `--inh-caps=+${capability}`,
    `--ambient-caps=+${capability}`,
    // Without this the kernel leaves capabilities out of access(2), by which PostgreSQL looks for its own programs.
    '--securebits=+no_setuid_fixup',
  ]
  return [[], keeping('dac_read_search'), keeping('dac_override')]
}

async function canReach(identity: Identity, paths: string[]): Promise<boolean> {
  const tests = paths.map((_, index) => `test -x "$${index + 1}"`).join(' && ')
  const { command, args, ...ids } = runAs(identity, '/bin/sh', ['-c', tests, 'sh', ...paths])
  try {
    await execute(command, args, { cwd: '/', ...(ids.uid === undefined ? {} : { uid: ids.uid, gid: ids.gid! }) })
    return true
  } catch {
    return false
  }
}

async function findAccount(names: string[]): Promise<{ user: string; uid: number; gid: number }> {
  for (const user of names) {
    try {
      const [uid, gid] = await Promise.all([execute('id', ['-u', user]), execute('id', ['-g', user])])
      return { user, uid: Number(uid.stdout), gid: Number(gid.stdout) }
    } catch {
      // No such user: the next.
    }
  }
  throw new Error(`PostgreSQL does not run as root, and there is no user ${names.join(' or ')} to run it as: add one.`)
}
