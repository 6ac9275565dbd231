/** What a service token may do: see procedures.ts. */
export const roles = ['gateway', 'service', 'funding', 'admin'] as const
export type Role = (typeof roles)[number]
export type ServiceToken = { name: string; role: Role; token: string }
