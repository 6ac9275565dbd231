/**
 * For the condition of a trigger: whether one of these columns changes. Compared as rows, PostgreSQL would show the condition otherwise
 * after Citus has copied the trigger to another node.
 */
export const changed = (...columns: string[]) =>
  columns.map(column => `new.${column} is distinct from old.${column}`).join(' or ')
