import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../../cli/processes/programs.ts'
import { makeTempDir } from './temp.ts'

/** A self-signed certificate and its key in PEM. `file`: the path of the certificate, for NODE_EXTRA_CA_CERTS. */
export type Certificate = { cert: string; key: string; file: string }

const curve = (name: string) => ['-newkey', 'ec', '-pkeyopt', `ec_paramgen_curve:${name}`]
const keys = {
  ec: curve('prime256v1'),
  'P-384': curve('secp384r1'),
  'P-521': curve('secp521r1'),
  binaryCurve: curve('sect571r1'),
  /** The certificate describes its curve instead of naming it. */
  explicitCurve: [...curve('prime256v1'), '-pkeyopt', 'ec_param_enc:explicit'],
  ed25519: ['-newkey', 'ed25519'],
  ed448: ['-newkey', 'ed448'],
  rsa: ['-newkey', 'rsa:2048'],
  rsaPss: ['-newkey', 'rsa-pss'],
}
export type KeyKind = keyof typeof keys

/** @param name the DNS name that the certificate is for */
export async function makeCertificate(name: string, kind: KeyKind = 'ec'): Promise<Certificate> {
  const directory = await makeTempDir('certificate')
  const [keyFile, file] = [join(directory, 'key.pem'), join(directory, 'certificate.pem')]
  const key = [...keys[kind], '-nodes', '-keyout', keyFile]
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-days', '2']
  await runOpenssl('req', '-x509', ...key, '-out', file, ...subject)
  return { cert: await readFile(file, 'utf8'), key: await readFile(keyFile, 'utf8'), file }
}

/**
 * Certificates that nobody trusts, each signed with the next one, and the key of the first one. They are small, but OpenSSL needs some
 * 50 ms to check all of them.
 */
export async function makeSlowChain(): Promise<Omit<Certificate, 'file'>> {
  const directory = await makeTempDir('certificate')
  const at = (name: string) => join(directory, name)
  await runOpenssl('ecparam', '-name', 'secp521r1', '-genkey', '-noout', '-out', at('authority.key'))
  await runOpenssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', at('key'))
  const certs: string[] = []
  for (let i = chainLength; i >= 0; i--) {
    const issuer = i === chainLength ? [] : ['-CA', at(`${i + 1}`), '-CAkey', at('authority.key')]
    const key = i === 0 ? at('key') : at('authority.key')
    await runOpenssl('req', '-x509', '-key', key, ...issuer, '-subj', `/CN=${i}`, '-days', '2', '-out', at(`${i}`))
    certs.unshift(await readFile(at(`${i}`), 'utf8'))
  }
  return { cert: certs.join(''), key: await readFile(at('key'), 'utf8') }
}

/** As many as fit into what a courier reads of them. */
const chainLength = 22

async function runOpenssl(...args: string[]): Promise<void> {
  await promisify(execFile)(await findProgram(['openssl'], 'openssl'), args)
}
