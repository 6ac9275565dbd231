/** The roles of service tokens. procedures.ts says what each may call. */
export const roles = ['gateway', 'service', 'funding', 'courier', 'admin'] as const
export type Role = (typeof roles)[number]
export type ServiceToken = { name: string; role: Role; token: string }
