import { readJson } from '../start/private-file.ts'

/** Both npm start and the containers have these. */
type Secrets = Record<
  'superuserPassword' | 'servicePassword' | 'keyEncryptionKeys' | 'ledgerChainKey' | 'receiptKeys',
  string
>

/** @throws Error if the file does not hold the secrets of an installation */
export async function readSecrets(path: string): Promise<Secrets> {
  const found = (await readJson(path)) as Secrets | undefined
  if (!found?.servicePassword || !found.ledgerChainKey || !found.keyEncryptionKeys || !found.receiptKeys)
    throw new Error(`${path} does not hold the secrets of an installation: give the right file with --secrets.`)
  return found
}
