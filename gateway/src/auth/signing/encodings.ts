import type { SigningMistake } from '@workspace-wallet/contract'

// Without modules of Node: see mistakes.ts.

export function encodeBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}

/** The bytes of Base64 text in either alphabet, padded or not; null if any character or the length does not fit. */
export function decodeBase64(text: string): Uint8Array | null {
  const unpadded = text.replace(/={1,2}$/, '')
  if (!/^[A-Za-z0-9+/_-]+$/.test(unpadded) || unpadded.length % 4 === 1) return null
  return Uint8Array.from(atob(unpadded.replaceAll('-', '+').replaceAll('_', '/')), character => character.charCodeAt(0))
}

/** The bytes of hexadecimal digits in either case; null if any character or the length does not fit. */
export function decodeHex(text: string): Uint8Array | null {
  if (!/^(?:[0-9A-Fa-f]{2})+$/.test(text)) return null
  return Uint8Array.from(text.match(/../g)!, digits => Number.parseInt(digits, 16))
}

/** The 32 bytes of an X-Signature, and the mistake in its encoding, if there is one; null for other text. */
export function decodeSignature(text: string): { bytes: Uint8Array; mistake: SigningMistake | null } | null {
  if (text.length > 88) return null
  const ofHex = decodeHex(text)
  if (ofHex?.length === 32) return { bytes: ofHex, mistake: 'SIGNATURE_HEX' }
  const bytes = decodeBase64(text)
  if (bytes?.length === 64) {
    const inner = decodeHex(String.fromCharCode(...bytes))
    return inner && { bytes: inner, mistake: 'SIGNATURE_HEX_IN_BASE64' }
  }
  if (bytes?.length !== 32) return null
  const mistake = /[-_]/.test(text) ? 'SIGNATURE_BASE64URL' : text.endsWith('=') ? null : 'SIGNATURE_UNPADDED'
  return { bytes, mistake }
}
