/** The line of a response in the formats of several servers. */
import type { SyntheticResponse } from './synthetic-log.ts';

const ORIGIN = Date.parse('2026-11-22T10:00:00.000Z');

export const ACCESS_LOG_LINES: Readonly<Record<string, (response: SyntheticResponse) => string>> = {
  'nginx with $msec': (response) => `${formatCombined(response)} ${(endOf(response) / 1000).toFixed(3)}`,
  Envoy: ({ at, took, status }) =>
    `[${toIso(ORIGIN + at)}] "GET / HTTP/1.1" ${status} - 0 57 ${took} ${took} "-" "curl/8.9" "a" "example.com" "10.0.0.1:80"`,
  'Envoy in JSON': ({ at, took, status }) =>
    JSON.stringify({ start_time: toIso(ORIGIN + at), response_code: status, response_flags: '-', duration: took }),
  Caddy: (response) =>
    JSON.stringify({
      ts: endOf(response) / 1000,
      request: { remote_ip: '203.0.113.7', method: 'GET', uri: '/' },
      duration: response.took / 1000,
      status: response.status,
    }),
  ALB: (response) =>
    `http ${toIso(endOf(response))} app/a/50dc6c495c0c9188 203.0.113.7:2817 10.0.0.1:80 0.000 ${(response.took / 1000).toFixed(3)} 0.000 ` +
    `${response.status} ${response.status} 34 366 "GET http://example.com:80/ HTTP/1.1" "curl/8.9" - - arn:aws:a "Root=1-5" "-" "-" 0 ` +
    `${toIso(ORIGIN + response.at)} "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`,
};

function formatCombined(response: SyntheticResponse): string {
  const [year = '', month = '', day = '', clock = ''] = toIso(endOf(response)).split(/[-T.]/);
  const name = new Date(endOf(response)).toLocaleString('en', { month: 'short', timeZone: 'UTC' });
  const seconds = (response.took / 1000).toFixed(3);
  return `203.0.113.7 - - [${day}/${month === '' ? '' : name}/${year}:${clock} +0000] "GET / HTTP/1.1" ${response.status} 57 "-" "curl/8.9" ${seconds} ${seconds}`;
}

function endOf({ at, took }: SyntheticResponse): number {
  return ORIGIN + at + took;
}

function toIso(time: number): string {
  return new Date(time).toISOString();
}
