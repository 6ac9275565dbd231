import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../../cli/processes/programs.ts'
import { makeTempDir } from './temp.ts'

/** A self-signed certificate and its key in PEM. `file`: the path of the certificate, for NODE_EXTRA_CA_CERTS. */
export type Certificate = { cert: string; key: string; file: string }

const keys = { ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'], rsa: ['-newkey', 'rsa:2048'] }

/** @param name the DNS name that the certificate is for */
export async function makeCertificate(name: string, kind: keyof typeof keys = 'ec'): Promise<Certificate> {
  const directory = await makeTempDir('certificate')
  const [keyFile, file] = [join(directory, 'key.pem'), join(directory, 'certificate.pem')]
  const key = [...keys[kind], '-nodes', '-keyout', keyFile]
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-days', '2']
  const openssl = await findProgram(['openssl'], 'openssl')
  await promisify(execFile)(openssl, ['req', '-x509', ...key, '-out', file, ...subject])
  return { cert: await readFile(file, 'utf8'), key: await readFile(keyFile, 'utf8'), file }
}
