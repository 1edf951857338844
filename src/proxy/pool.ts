import { readFileSync } from 'node:fs';
import type { buildConnector as Connectors } from 'undici';
import { Agent, buildConnector } from 'undici';
import type { Millis } from '../policy/types.ts';
import { mendParsers } from './mend-parser.ts';

export interface TlsOptions {
  /** PEM text, or the path of a PEM file. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly insecure: boolean;
}

export interface PoolOptions {
  readonly connections: number;
  readonly connectTimeout: Millis;
  readonly tls: TlsOptions;
}

/** undici's own bound of 16 KiB would tell a write as unknown because of its cookies; Envoy's is 60 KiB. */
const MAX_HEADER_SIZE = 64 * 1024;

/**
 * Connections to one upstream. Time-outs are the exchange's own: undici's would kill quiet streams after 300 s.
 * Certificates are verified here, because @fastify/reply-from 12.6.5 does not by default (CVE-2026-107318).
 */
export function openPool(options: PoolOptions): Agent {
  const { tls } = options;
  const agent = new Agent({
    connections: options.connections,
    pipelining: 1,
    allowH2: false,
    useMilo: false, // whatever UNDICI_USE_MILO says: experimental
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_HEADER_SIZE,
    keepAliveTimeout: 4000,
    connect: tellResets(
      buildConnector({
        allowH2: false,
        timeout: options.connectTimeout,
        minVersion: tls.minVersion,
        rejectUnauthorized: !tls.insecure,
        ...given('ca', pem(tls.ca)),
        ...given('cert', pem(tls.cert)),
        ...given('key', pem(tls.key)),
        ...given('servername', tls.serverName),
      }),
    ),
  });
  mendParsers(agent);
  return agent;
}

/**
 * undici 8.12.4 (client-h1.js, onHttpSocketError) takes ECONNRESET for the end of a body that has no length: what was cut
 * would be passed on as whole. By any other name a reset is the error that it is.
 */
function tellResets(connect: Connectors.connector): Connectors.connector {
  return (options, done) => {
    connect(options, (...result) => {
      result[1]?.prependListener('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNRESET') error.code = 'ECONNABORTED';
      });
      done(...result);
    });
  };
}

/** @throws an Error of node:fs that names the path, when a file cannot be read */
function pem(value: string | undefined): string | undefined {
  if (value === undefined || value.includes('-----BEGIN')) return value;
  return readFileSync(value, 'utf8');
}

function given<K extends string>(key: K, value: string | undefined): Partial<Record<K, string>> {
  const out: Partial<Record<K, string>> = {};
  if (value !== undefined) out[key] = value;
  return out;
}

/** How many attempts there are for the connections that may be made: beyond them they wait in the pool's own queue. */
export class PoolLoad {
  readonly #connections: number;
  #attempts = 0;

  constructor(connections: number) {
    this.#connections = connections;
  }

  begin(): void {
    this.#attempts += 1;
  }

  end(): void {
    this.#attempts -= 1;
  }

  /** More attempts than connections: at least one of them has none because of us. */
  isFull(): boolean {
    return this.#attempts > this.#connections;
  }
}
