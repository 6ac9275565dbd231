/**
 * Nothing that we start runs as root. When we are root (a container, say) it runs as another user, which must still reach
 * its program and its data although a directory above them, such as /root, may be closed to it.
 */
import { execFile } from 'node:child_process'
import { lchown, lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
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

type Owner = { uid: number; gid: number }

/** What a program must be able to do: run itself, enter directories, read files. */
type Needs = { program: string; directories?: string[]; files?: string[] }

/** For a program beside others that run already, as root: the user who owns this path. Undefined: as ourselves. */
export async function identityBeside(path: string, needs: Needs): Promise<Identity | undefined> {
  if (!isRoot()) return undefined
  const { uid, gid } = await stat(path)
  return chooseIdentity(uid === 0 ? undefined : { uid, gid }, needs)
}

/**
 * The user to run as: the one who owns the data already, else `postgres`, else `nobody`; and the way to do it that
 * meets all needs.
 */
export async function chooseIdentity(owner: Owner | undefined, needs: Needs): Promise<Identity> {
  const account = owner ? { user: `user ${owner.uid}`, ...owner } : await findAccount(['postgres', 'nobody'])
  for (const prefix of waysToBecome(account)) {
    const identity = { ...account, prefix }
    if (await isEnough(identity, needs)) return identity
  }
  const { program, directories = [], files = [] } = needs
  throw new Error(
    `Nothing runs as root here, and ${account.user} cannot reach ${[program, ...directories, ...files].join(' or ')}: ` +
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

async function isEnough(identity: Identity, { program, directories = [], files = [] }: Needs): Promise<boolean> {
  const paths = [program, ...directories, ...files]
  const test = (index: number) => (index < paths.length - files.length ? '-x' : '-r')
  const tests = paths.map((_, index) => `test ${test(index)} "$${index + 1}"`).join(' && ')
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
  throw new Error(`Nothing runs as root here, and there is no user ${names.join(' or ')} to run it as: add one.`)
}

/**
 * Makes a path, with everything below it, this user's own; nothing to do when that is ourselves. What is the user's
 * already is not touched: the change time of the nonce file tells the gateway that nobody has written it.
 */
export async function giveTo(identity: Identity | undefined, path: string): Promise<void> {
  if (!identity) return
  const below = (await stat(path)).isDirectory() ? await readdir(path, { recursive: true }) : []
  for (const each of [path, ...below.map(entry => join(path, entry))]) {
    const { uid, gid } = await lstat(each)
    if (uid !== identity.uid || gid !== identity.gid) await lchown(each, identity.uid, identity.gid)
  }
}
