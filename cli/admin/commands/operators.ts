import { type IssuedOperator, type OperatorRecord, operatorName, operatorRoles } from '@workspace-wallet/contract'
import { command } from '../command.ts'
import { table } from '../table.ts'
import { oneOf, parseExpiry, parserFor } from '../values.ts'
import { reason } from './id-flags.ts'

const parseRole = oneOf('role', operatorRoles)
const name = {
  value: 'NAME',
  help: 'name of the operator',
  required: true,
  parse: parserFor(
    operatorName,
    'must be 1 to 64 lower-case letters, digits or any of . _ @ + -, and begin with a letter or digit',
  ),
} as const
const expires = {
  value: 'WHEN',
  help: 'when the token expires: a date, a time with a zone, or a duration such as 90d',
} as const

export const operatorCommands = [
  command({
    noun: 'operator',
    verb: 'create',
    help: 'create an operator, and print the token once',
    flags: {
      name,
      role: {
        value: 'ROLE',
        help: 'admin: everything that operators can do; viewer: only read',
        required: true,
        choices: operatorRoles,
        parse: parseRole,
      },
      expires: { ...expires, help: `${expires.help} (default: never)`, parse: parseExpiry },
      reason,
    },
    examples: ['--name ada --role admin --expires 90d', '--name bob@example.com --role viewer'],
    async run(core, { name, role, expires: expiresAt, reason }) {
      return { ...(await core.operators.create.mutate({ name, role, expiresAt, reason })), role }
    },
    print: printIssued,
  }),
  command({
    noun: 'operator',
    verb: 'list',
    help: 'list operators, without their tokens',
    flags: {},
    examples: [''],
    async run(core) {
      const operators: OperatorRecord[] = []
      for (let after: string | undefined; ; ) {
        const page = await core.operators.list.query({ after, limit: 500 })
        operators.push(...page.operators)
        if (page.next === null) break
        after = page.next
      }
      return { operators }
    },
    print: ({ operators }) => (operators.length > 0 ? printOperators(operators) : 'No operators found.'),
  }),
  command({
    noun: 'operator',
    verb: 'rotate',
    help: 'replace the token of an operator, and print the new one once',
    flags: {
      name,
      expires: { ...expires, help: `${expires.help}, or never (default: as before)`, parse: parseNewExpiry },
      reason,
    },
    examples: ['--name ada', '--name ada --expires 90d'],
    run: (core, { name, expires: expiresAt, reason }) => core.operators.rotate.mutate({ name, expiresAt, reason }),
    print: printIssued,
  }),
  command({
    noun: 'operator',
    verb: 'disable',
    help: 'disable an operator: every core refuses the token from now on',
    flags: { name, reason },
    examples: ['--name ada', "--name ada --reason 'has left'"],
    async run(core, { name, reason }) {
      await core.operators.disable.mutate({ name, reason })
      return { name, disabled: true }
    },
    print: ({ name }) => `Disabled operator ${name}.`,
  }),
]

export const sessionCommands = [
  command({
    noun: 'session',
    verb: 'whoami',
    help: 'show whose token the commands use, and its role',
    flags: {},
    examples: [''],
    run: core => core.session.whoami.query(),
    print: ({ actor, role, expiresAt }) =>
      `${actor}, with the role ${role}. The token ${expiresAt ? `expires at ${expiresAt.toISOString()}` : 'never expires'}.`,
  }),
]

function parseNewExpiry(text: string): Date | null {
  return text === 'never' ? null : parseExpiry(text)
}

function printIssued({ name, token, expiresAt }: IssuedOperator): string {
  const expiry = expiresAt ? ` It expires at ${expiresAt.toISOString()}.` : ''
  return `Operator  ${name}\nToken     ${token}\n\nStore the token now. It is not shown again.${expiry}`
}

function printOperators(operators: OperatorRecord[]): string {
  const rows = operators.map(each => [
    each.name,
    each.role,
    each.isModified ? 'MODIFIED' : each.status,
    each.expiresAt?.toISOString() ?? 'never',
    each.createdAt.toISOString(),
    each.updatedAt.toISOString(),
  ])
  return table(['NAME', 'ROLE', 'STATUS', 'EXPIRES', 'CREATED', 'CHANGED'], rows)
}
