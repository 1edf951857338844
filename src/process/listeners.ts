/** The listeners of a standalone process: admin, telemetry and the proxy itself. */
import type { Logger } from 'pino';
import type { Config } from '../config/schema/config-schema.ts';
import type { ResourceStack } from './resource-stack.ts';
import type { OperatorServers } from './operator-servers.ts';
import { NO_OPERATOR_SERVERS, startOperatorOutputs } from './operator-servers.ts';
import { FastifyListener } from '../http/server/fastify-listener.ts';
import type { Proxy } from '../http/request/proxy.ts';
import type { AppParts } from './app-types.ts';
import { listenAddresses, setSocketPermissions, removeStaleSocket } from './unix-socket.ts';

export interface ListenersParts extends Pick<AppParts, 'logger'> {
  readonly proxy: Proxy;
  readonly maxConnections: number;
  readonly membership: AppParts['membership'] | undefined;
  readonly operatorOptions: Parameters<typeof startOperatorOutputs>[1];
}

/**
 * Opens the listeners, the proxy last.
 * @param resources gets the close function of each
 * @returns the URL of the proxy, with its actual port
 * @throws the error of listen(2), with its code; that of node:fs or node:tls, when the certificate cannot be used
 */
export async function openListeners(
  config: Config,
  { proxy, maxConnections, membership, operatorOptions, logger }: ListenersParts,
  resources: Pick<ResourceStack, 'push'>,
): Promise<{ readonly operators: OperatorServers; readonly url: string }> {
  const { listen } = config;
  const listener = new FastifyListener({
    ...listen,
    headersTimeout: config.limits.headers,
    maxConnections,
    grpc: config.check?.grpc === true,
    ticketKeys: membership?.ticketKeys,
    onCertificate: (problem) => logCertificate(logger, problem),
  });
  // With several workers, the primary manages the socket files.
  const isSingleProcess = membership === undefined;
  if (isSingleProcess) for (const address of listenAddresses(config)) await removeStaleSocket(address);
  const operators = isSingleProcess
    ? await startOperatorOutputs(config, operatorOptions, resources)
    : NO_OPERATOR_SERVERS;
  resources.push(() => proxy.close());
  const url = await proxy.open(listener);
  if (isSingleProcess) setSocketPermissions(listen.address, listen.permissions);
  return { operators, url };
}

/** Logs that the server certificate was reloaded. @param problem why the previous one stays in use */
function logCertificate(logger: Logger, problem: Error | undefined): void {
  if (problem === undefined) return logger.info('certificate reloaded: its files have changed');
  const text = 'new certificate cannot be used: the previous one stays in use';
  logger.warn({ problem: problem.message }, text);
}
