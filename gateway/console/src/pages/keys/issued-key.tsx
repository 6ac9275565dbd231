import { ShownOnce } from '../../components/shown-once.tsx'
import { useText } from '../../preferences/preferences.tsx'

export type Issued = { apiKey: string; apiSecret: string }

type IssuedKeyProps = { title: string; issued: Issued; onClose: () => void }

/** A new secret, which is shown once, with a first call to try it. */
export function IssuedKey({ title, issued: { apiKey, apiSecret }, onClose }: IssuedKeyProps) {
  const { keys } = useText()
  const call = `API_KEY='${apiKey}' API_SECRET='${apiSecret}' npm run call -- GET '/api/v1/wallets?size=1'`
  const values = [
    { label: keys.apiKey, value: apiKey },
    { label: keys.apiSecret, value: apiSecret },
    { label: keys.firstCall, value: call },
  ]
  return <ShownOnce title={title} about={keys.onlyOnce} values={values} onClose={onClose} />
}
