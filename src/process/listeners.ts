/** What listens where nobody mounts us: the ports of operators, and the proxy's own. */
import { logCertificate } from './log-certificate.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { Opened } from './resource-stack.ts';
import type { Operators } from './operator-servers.ts';
import { openToOperators } from './operator-servers.ts';
import { Listener } from '../http/server/fastify-listener.ts';
import type { Proxy } from '../http/request/proxy.ts';
import type { AppParts } from './app-types.ts';
import { addressesOf, permit, removeStaleSocket } from './unix-socket.ts';

export interface OwnListenersParts extends Pick<AppParts, 'logger'> {
  readonly proxy: Proxy;
  readonly maxConnections: number;
  readonly membership: AppParts['membership'] | undefined;
  readonly shown: Parameters<typeof openToOperators>[1];
}

/**
 * Opens them; the proxy last.
 * @param opened gets what closes each of them
 * @returns with where clients connect, ports filled in
 * @throws the error of listen(2), with its code; that of node:fs or node:tls, when the certificate cannot be used
 */
export async function openOwnListeners(
  config: Config,
  { proxy, maxConnections, membership, shown, logger }: OwnListenersParts,
  opened: Pick<Opened, 'push'>,
): Promise<{ readonly operators: Operators; readonly url: string }> {
  const { listen } = config;
  const listener = new Listener({
    ...listen,
    headersTimeout: config.limits.headers,
    maxConnections,
    ticketKeys: membership?.ticketKeys,
    onCertificate: (problem) => logCertificate(logger, problem),
  });
  // Of several workers, the primary sees to the files of sockets.
  const isAlone = membership === undefined;
  if (isAlone) for (const address of addressesOf(config)) await removeStaleSocket(address);
  const operators = await openToOperators(config, shown, opened);
  opened.push(() => proxy.close());
  const url = await proxy.open(listener);
  if (isAlone) permit(listen.address, listen.permissions);
  return { operators, url };
}
