/**
 * Caddy's JSON access log (https://caddyserver.com/docs/logging): `ts` is the end of a request, in seconds since 1970, ISO 8601, or
 * one of the named layouts; `duration` is in seconds, or text with a unit.
 */
import type { Millis } from '../../../core/scalars.ts';
import type { AccessRecord } from './access-record.ts';
import { withoutPort } from './access-record.ts';

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  µs: 1e-3,
  us: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

type Fields = Readonly<Record<string, unknown>>;

/** @returns undefined if the object is not a request of Caddy */
export function readCaddyJson(fields: Fields): AccessRecord | undefined {
  const { ts, status, duration, request } = fields;
  if (!isFields(request) || typeof status !== 'number') return undefined;
  const ended = typeof ts === 'number' ? 1000 * ts : typeof ts === 'string' ? parseStamp(ts) : Number.NaN;
  if (Number.isNaN(ended)) return undefined;
  const took = parseDuration(duration);
  const { client_ip: client, remote_ip: remote, remote_addr: address, method, uri } = request;
  const known = [client, remote, address].find((each) => typeof each === 'string');
  return {
    at: ended - (took ?? 0),
    client: typeof known === 'string' ? withoutPort(known) : '',
    status,
    method: typeof method === 'string' ? method : 'GET',
    path: typeof uri === 'string' ? uri : '/',
    took,
    service: took,
  };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

/** ISO 8601, or `2026/11/22 10:00:00.123` in UTC. */
function parseStamp(text: string): Millis {
  const wall = /^(\d{4})\/(\d\d)\/(\d\d) ([\d:.]+)$/.exec(text);
  return Date.parse(wall === null ? text : `${wall[1]}-${wall[2]}-${wall[3]}T${wall[4]}Z`);
}

/** Seconds, or text such as `1.5ms` or `1m2.5s`. */
function parseDuration(value: unknown): Millis | undefined {
  if (typeof value === 'number') return value >= 0 ? 1000 * value : undefined;
  if (typeof value !== 'string' || !/^(?:[\d.]{1,20}(?:ns|µs|us|ms|s|m|h)){1,6}$/.test(value)) return undefined;
  const parts = [...value.matchAll(/([\d.]{1,20})(ns|µs|us|ms|s|m|h)/g)];
  return parts.reduce((sum, [, number = '', unit = '']) => sum + Number(number) * (UNITS[unit] ?? 0), 0);
}
