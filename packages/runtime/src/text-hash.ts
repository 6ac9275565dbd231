/** The 32-bit FNV-1a hash of a text. It distributes workspaces over shards and cores. */
export function hashText(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  return value >>> 0
}
