/** In order. A file of their own: the verifier compares them, and does not load MikroORM for that. */
export const migrationNames = ['0001-initial'] as const
