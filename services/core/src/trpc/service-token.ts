/** The roles of tokens. procedures.ts says what each may call. Operators are admins or viewers. */
export const roles = ['gateway', 'service', 'funding', 'courier', 'admin', 'viewer'] as const
export type Role = (typeof roles)[number]
export type ServiceToken = { name: string; role: Role; token: string }

/** The token of a caller: one of SERVICE_TOKENS, or that of an operator. */
export type CallerToken = Pick<ServiceToken, 'name' | 'role'> & {
  isOperator?: boolean
  /** When the token of an operator expires. */
  expiresAt?: Date | null
}
