/**
 * Envoy's access log: the default format string
 * (https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage), and a JSON format whose keys are
 * the names of the operators in lower case. `START_TIME` is the arrival, `DURATION` in ms.
 */
import type { LogFormat } from './log-format.ts';
import type { AccessRecord } from './access-record.ts';
import { parseRequestLine, toLoggedRequest, withoutPort } from './access-record.ts';

const DEFAULT_FORMAT =
  /^\[(\d{4}-\d{2}-\d{2}T[^\]]+)\] "([^"]*)" (\d{1,3}) (\S+) (?:\d+|-) (?:\d+|-) (\d+|-) (\d+|-) "([^"]*)" "[^"]*" "[^"]*" "[^"]*" "[^"]*"/;

/**
 * Response flags of a 503 that the service did not send and that is no limit: connection failures, resets, timeouts, no healthy host.
 * `UO` (circuit breaker), `RL` (rate limit) and `OM` (overload manager) are limits.
 */
const FAILURE_FLAGS = new Set(['UF', 'UH', 'UC', 'UR', 'LH', 'LR', 'UT', 'NR', 'NC', 'DF', 'UPE', 'FI', 'DC', 'DT']);

export const ENVOY_TEXT: LogFormat = { parse: parseText, describeProblem, hasHeader: false };

/** Whether a line begins as Envoy's does. */
export function isEnvoyText(line: string): boolean {
  return DEFAULT_FORMAT.test(line);
}

function parseText(text: string, line: number): ReturnType<LogFormat['parse']> {
  const match = DEFAULT_FORMAT.exec(text);
  if (match === null) return 'none';
  const [, start = '', request = '', status = '', flags = '', duration = '', service = '', forwarded = ''] = match;
  const at = Date.parse(start);
  if (Number.isNaN(at)) return 'none';
  return toLoggedRequest(
    {
      at,
      client: firstAddress(forwarded),
      status: Number(status),
      ...parseRequestLine(request),
      took: toNumber(duration),
      service: toNumber(service) ?? toNumber(duration),
      isUnreached: isFailure(flags),
    },
    line,
  );
}

/** @returns undefined if the object is not a request of Envoy */
export function readEnvoyJson(fields: Readonly<Record<string, unknown>>): AccessRecord | undefined {
  const { start_time: start, response_code: code, response_flags: flags, duration, method, path } = fields;
  const at = typeof start === 'string' ? Date.parse(start) : Number.NaN;
  const status = toNumber(code);
  if (Number.isNaN(at) || status === undefined) return undefined;
  const took = toNumber(duration);
  const address = fields['downstream_remote_address'];
  const forwarded = fields['x_forwarded_for'];
  const cluster = fields['upstream_cluster'];
  return {
    at,
    client:
      typeof forwarded === 'string' && forwarded !== ''
        ? firstAddress(forwarded)
        : withoutPort(typeof address === 'string' ? address : ''),
    status,
    method: typeof method === 'string' ? method : 'GET',
    path: typeof path === 'string' ? path : '/',
    upstream: typeof cluster === 'string' ? cluster : '',
    took,
    service: toNumber(fields['x_envoy_upstream_service_time']) ?? toNumber(fields['upstream_service_time']) ?? took,
    isUnreached: typeof flags === 'string' && isFailure(flags),
  };
}

function isFailure(flags: string): boolean {
  return flags.split(',').some((flag) => FAILURE_FLAGS.has(flag));
}

function firstAddress(forwarded: string): string {
  const [first = ''] = forwarded.split(',');
  return first === '-' ? '' : first.trim();
}

/** JSON formats have numbers as numbers or as text. */
function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : undefined;
}

function describeProblem(text: string): string {
  return `is '${text.slice(0, 40)}': expected Envoy's default format, [%START_TIME%] "%REQ(:METHOD)% … %PROTOCOL%" %RESPONSE_CODE% …`;
}
