/** The addresses of `npm start`, from its environment. */
import { pickFreePort } from '../processes/ports.ts'

export interface Settings {
  gatewayHost: string
  gatewayPort: number
  coreHost: string
  corePort: number
  internalHost: string
  internalPort: number
  /** URL of the gateway for clients on this machine. */
  baseUrl: string
  coreUrl: string
  /** URL of the operators' console. */
  consoleUrl: string
  /** WEBHOOK_ALLOWED_NETWORKS of core and the courier. */
  webhookNetworks: string
}

const loopbackHosts = ['127.0.0.1', '::1', 'localhost']
const loopbackNetworks = '127.0.0.0/8,::1/128'

/** @throws Error that says how to correct the variable */
export async function readSettings(env: NodeJS.ProcessEnv): Promise<Settings> {
  const gatewayHost = env.GATEWAY_HOST || '127.0.0.1'
  const gatewayPort = await readPort('GATEWAY_PORT', env.GATEWAY_PORT || '8080')
  const coreHost = env.CORE_HOST || '127.0.0.1'
  const corePort = await readPort('CORE_PORT', env.CORE_PORT || '8081')
  const internalHost = env.INTERNAL_HOST || '127.0.0.1'
  const internalPort = await readPort('INTERNAL_PORT', env.INTERNAL_PORT || '0')
  if (gatewayPort === corePort)
    throw new Error(`GATEWAY_PORT and CORE_PORT are both ${corePort}: set one of them to another port.`)
  const baseUrl = localUrl(gatewayHost, gatewayPort)
  const coreUrl = localUrl(coreHost, corePort)
  const consoleUrl = `${localUrl(internalHost, internalPort)}/console`
  // Webhooks can be tried without a public address, unless other machines reach the gateway, directly or through a proxy:
  // their webhooks would reach the services of this machine.
  const isLocal = loopbackHosts.includes(gatewayHost) && !env.TRUSTED_PROXIES && !env.TRUSTED_PROXIES_FILE
  const webhookNetworks = env.WEBHOOK_ALLOWED_NETWORKS ?? (isLocal ? loopbackNetworks : '')
  return {
    gatewayHost,
    gatewayPort,
    coreHost,
    corePort,
    internalHost,
    internalPort,
    baseUrl,
    coreUrl,
    consoleUrl,
    webhookNetworks,
  }
}

async function readPort(variable: string, text: string): Promise<number> {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new Error(
      `${variable} is ${JSON.stringify(text)}: set it to a port from 1 to 65535, or to 0 for any free one.`,
    )
  return port || pickFreePort()
}

/** Clients cannot connect to a wildcard address such as 0.0.0.0. */
function localUrl(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${port}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
