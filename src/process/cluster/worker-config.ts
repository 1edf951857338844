import type { Config } from '../../config/schema/config-schema.ts';
import { divideConfig } from '../../config/compile/divide-config.ts';

/** The configuration of each of several workers. @param secret of the hashes of clients, so that all workers name them alike */
export function deriveWorkerConfig(whole: Config, count: number, secret: Config['secret']): Config {
  const state: Config['state'] = whole.state.store === 'redis' ? whole.state : { store: 'memory' };
  return { ...divideConfig(whole, count), admin: false, telemetry: undefined, secret, state };
}

/** With `port: 0`, a restarted worker listens on the port that the first workers were given, when none of them is left. */
export function withListenPort(config: Config, url: string): Config {
  const { address } = config.listen;
  if (address.kind !== 'tcp' || address.port !== 0) return config;
  return { ...config, listen: { ...config.listen, address: { ...address, port: Number(new URL(url).port) } } };
}
