export {
  bodyHash,
  type Credentials,
  canonicalMessage,
  type RequestToSign,
  type SignedHeaders,
  type SignedParts,
  sign,
  signedHeaders,
} from './signing.ts'
