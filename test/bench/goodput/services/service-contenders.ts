import { fileURLToPath } from 'node:url';
import type { Millis } from '../../../../src/core/scalars.ts';
import { caddyConfig } from '../../caddy-config.ts';
import { freePort } from '../../../support/free-port.ts';
import { tidegateConfig } from '../configs.ts';
import type { RunningProxy } from '../contenders.ts';
import {
  hostOf,
  startContender,
  startHaproxy,
  startNode,
  startPeer,
  startTidegate,
  versionOf,
  versionPrinted,
  writeConfig,
} from '../contenders.ts';
import type { ServiceKind } from './service-kinds.ts';
import { maxconnOf } from './service-kinds.ts';

export const SERVICE_CONTENDERS = [
  'tidegate-latency',
  'tidegate-timeout',
  'tidegate',
  'gradient2',
  'nginx',
  'haproxy',
  'haproxy-maxconn',
  'caddy',
  'bare',
] as const;

export type ServiceContenderName = (typeof SERVICE_CONTENDERS)[number];

/** Tidegate with `learnFromLatency`. */
export const HAVE_GOALS: readonly ServiceContenderName[] = ['tidegate-latency', 'tidegate-timeout'];

/** For a smoke run, of the first service and of the others: those that do not run with a hidden limit too. */
export const SMOKED: readonly [readonly ServiceContenderName[], readonly ServiceContenderName[]] = [
  ['tidegate-latency', 'gradient2', 'haproxy-maxconn', 'caddy'],
  ['tidegate-timeout'],
];

/** Its name in the tables. */
export function labelOf(name: ServiceContenderName, kind: ServiceKind): string {
  switch (name) {
    case 'tidegate-latency':
      return 'tidegate, learnFromLatency';
    case 'tidegate-timeout':
      return `tidegate, learnFromLatency, timeout ${timeoutOf(kind)} ms`;
    case 'haproxy-maxconn':
      return `haproxy, maxconn ${maxconnOf(kind)}`;
    default:
      return name;
  }
}

/** Returns its version; undefined if it is not installed. */
export function serviceVersionOf(name: ServiceContenderName): string | undefined {
  switch (name) {
    case 'tidegate-latency':
    case 'tidegate-timeout':
      return versionOf('tidegate');
    case 'gradient2':
      return `node:http and undici, Node ${process.version}`;
    case 'haproxy-maxconn':
      return versionOf('haproxy');
    case 'caddy':
      return versionPrinted('caddy', /v?(\d[\d.]+)/, 'version');
    default:
      return versionOf(name);
  }
}

/**
 * Starts one without learned state in front of a service.
 * @param folder for its files
 * @param workers of Tidegate
 */
export async function startServiceContender(
  name: ServiceContenderName,
  kind: ServiceKind,
  { upstream, folder, workers }: { readonly upstream: string; readonly folder: string; readonly workers: number },
): Promise<RunningProxy> {
  switch (name) {
    case 'tidegate-latency':
      return startTidegate(folder, tidegateConfig(upstream, workers, { learnFromLatency: true }));
    case 'tidegate-timeout': {
      const settings = { learnFromLatency: true, timeout: timeoutOf(kind) };
      return startTidegate(folder, tidegateConfig(upstream, workers, settings));
    }
    case 'gradient2':
      return startNode([GRADIENT2, upstream], /listening on (http:\S+)/);
    case 'haproxy-maxconn':
      return startHaproxy(upstream, folder, { maxconn: maxconnOf(kind), timeout: kind.timeout / 2 });
    case 'caddy': {
      const port = await freePort();
      const file = writeConfig(folder, 'caddy.json', caddyConfig(port, hostOf(upstream)));
      return startPeer('caddy', ['run', '--config', file], port);
    }
    default:
      return startContender(name, upstream, folder, workers);
  }
}

const GRADIENT2 = fileURLToPath(new URL('gradient2-proxy.ts', import.meta.url));

/** Just before the clients disconnect. */
function timeoutOf({ timeout }: ServiceKind): Millis {
  return 0.95 * timeout;
}
