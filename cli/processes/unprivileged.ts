/**
 * Keeps programs from running as root. If root starts them, they run as another user, who must be able to reach the
 * program and its data even if a directory above them, such as /root, is closed to that user.
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
  /** Goes before the command; empty if the user can reach everything without help. */
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

/** The paths that a user needs: a program to run, directories to enter, files to read. */
type Needs = { program: string; directories?: string[]; files?: string[] | undefined }

/** The user who owns this path, for a program that shares it with others. Undefined, for the current user, unless root. */
export async function identityBeside(path: string, needs: Needs): Promise<Identity | undefined> {
  if (!isRoot()) return undefined
  const { uid, gid } = await stat(path)
  return chooseIdentity(uid === 0 ? undefined : { uid, gid }, needs)
}

/**
 * Users without an account, one for each program that root starts, so that neither PostgreSQL nor another program can read the
 * keys in its environment. Debian reserves these IDs, and systemd leaves them unused.
 */
const userOfProgram = { core: 65_521, courier: 65_522, gateway: 65_523 }

/** The user of one of our programs. Undefined, for the current user, unless root. @throws Error as `chooseIdentity` */
export async function identityOf(program: keyof typeof userOfProgram, needs: Needs): Promise<Identity | undefined> {
  if (!isRoot()) return undefined
  const id = userOfProgram[program]
  return chooseIdentity({ uid: id, gid: id }, needs)
}

/**
 * The user to run as (the owner of the data, else `postgres`, else `nobody`), and a way to become that user that meets all
 * needs.
 *
 * @throws Error that says what to change, if there is none
 */
export async function chooseIdentity(owner: Owner | undefined, needs: Needs): Promise<Identity> {
  const account = owner ? { user: `user ${owner.uid}`, ...owner } : await findAccount(['postgres', 'nobody'])
  for (const prefix of prefixesFor(account)) {
    const identity = { ...account, prefix }
    if (await meetsNeeds(identity, needs)) return identity
  }
  const { program, directories = [], files = [] } = needs
  throw new Error(
    `Programs do not run as root, and ${account.user} cannot reach ${[program, ...directories, ...files].join(' or ')}: ` +
      'start as an ordinary user, install setpriv (util-linux), or move the checkout and DATA_DIR to a directory that every user can enter.',
  )
}

/**
 * No prefix first, then setpriv with one capability: to read and enter any directory, or, if a container withholds that
 * one, to override file permissions.
 */
function prefixesFor(account: { uid: number; gid: number }): string[][] {
  const keeping = (capability: string) => [
    'setpriv',
    `--reuid=${account.uid}`,
    `--regid=${account.gid}`,
    '--clear-groups',
    `--inh-caps=+${capability}`,
    `--ambient-caps=+${capability}`,
    // Without this the kernel ignores capabilities in access(2), which PostgreSQL uses to find its own programs.
    '--securebits=+no_setuid_fixup',
  ]
  return [[], keeping('dac_read_search'), keeping('dac_override')]
}

async function meetsNeeds(identity: Identity, { program, directories = [], files = [] }: Needs): Promise<boolean> {
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
      // There is no such user: try the next one.
    }
  }
  throw new Error(`Programs do not run as root, and there is no user ${names.join(' or ')} to run them: add one.`)
}

/**
 * Makes this user the owner of a path and everything below it. Does nothing without an identity. Files that the user
 * already owns are not touched, because the gateway takes a new change time of the nonce file for a modification.
 */
export async function giveTo(identity: Identity | undefined, path: string): Promise<void> {
  if (!identity) return
  const below = (await stat(path)).isDirectory() ? await readdir(path, { recursive: true }) : []
  for (const each of [path, ...below.map(entry => join(path, entry))]) {
    const { uid, gid } = await lstat(each)
    if (uid !== identity.uid || gid !== identity.gid) await lchown(each, identity.uid, identity.gid)
  }
}
