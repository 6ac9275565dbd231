/**
 * The first bytes of a body, as text, and of one that breaks what has arrived. Reads no further: the body is destroyed or cancelled. For
 * bodies of errors, which a server may never end.
 */
export async function firstText(body: AsyncIterable<Uint8Array>, maxBytes = 65_536): Promise<string> {
  const pieces: Uint8Array[] = []
  let left = maxBytes
  try {
    for await (const piece of body) {
      pieces.push(piece.subarray(0, left))
      left -= piece.length
      if (left <= 0) break
    }
  } catch {
    // The connection broke.
  }
  return Buffer.concat(pieces).toString()
}
