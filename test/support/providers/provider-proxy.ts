/** Starts Tidegate with a provider preset in front of a fake of that provider. */
import type { TrafficRequest } from '../../../src/simulator/practice/traffic-generator.ts';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { pause } from '../pause.ts';
import type { Received, Sent } from '../clients/send.ts';
import { send } from '../clients/send.ts';
import type { Tidegate } from '../proxy/tidegate.ts';
import { startTidegate } from '../proxy/tidegate.ts';
import type { ProviderFake } from './provider-fake.ts';

export interface ProviderProxy {
  readonly tidegate: Tidegate;
  /** Sends one request; `intent` becomes X-Intent. */
  readonly send: (method: string, path: string, sent?: Sent & { readonly intent?: string }) => Promise<Received>;
  /** Sends at this rate from the start. Returns the number of responses by status. */
  readonly load: (
    rate: number,
    seconds: number,
    request: (n: number) => TrafficRequest,
  ) => Promise<Readonly<Record<number, number>>>;
  /** Total of a reason. */
  readonly throttled: (reason: string) => Promise<number>;
  readonly cuts: () => Promise<number>;
}

/**
 * @param settings of the upstream, in addition to its provider and url
 * @param delay before each retry
 */
export async function startProviderProxy(
  provider: string,
  { url }: ProviderFake,
  settings = '',
  delay = '20ms',
): Promise<ProviderProxy> {
  const tidegate = await startTidegate(`
upstreams:
  api:
    provider: ${provider}
    url: ${url}
    perTryTimeout: 1s
    retry: {backOff: {strategy: fixed, baseInterval: ${delay}}}
    ${settings}
`);
  const sum = async (pattern: RegExp): Promise<number> => {
    const text = await (await fetch(`${tidegate.adminUrl}/metrics`)).text();
    return text
      .split('\n')
      .filter((line) => pattern.test(line))
      .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0);
  };
  return {
    tidegate,
    send: (method, path, { intent, headers = [], ...sent } = {}) =>
      send(tidegate.url, path, {
        ...sent,
        method,
        headers: [...headers, ...(intent === undefined ? [] : ['X-Intent', intent])],
      }),
    load: async (rate, seconds, request) => {
      const traffic = startTraffic({ target: tidegate.url, clients: [{ name: 'shop', rate, request }], seed: 7 });
      await pause(seconds * 1000);
      await traffic.stop();
      return traffic.stats()['shop']?.answered ?? {};
    },
    throttled: (reason) => sum(new RegExp(`^tidegate_upstream_throttled_total\\{[^}]*reason="${reason}"`)),
    cuts: () => sum(/^tidegate_ratelimit_cuts_total\{/),
  };
}
