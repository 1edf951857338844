import type { Millis } from '../../../src/core/scalars.ts';
import { nginxFrame } from '../nginx-frame.ts';

export interface TidegateSettings {
  readonly learnFromLatency?: boolean;
  readonly timeout?: Millis;
}

/** Tidegate's defaults, except for addresses, the header that identifies clients, and the given settings. */
export function tidegateConfig(
  upstream: string,
  workers: number,
  { learnFromLatency = false, timeout }: TidegateSettings = {},
): string {
  const timing = timeout === undefined ? '' : `    timeout: ${timeout}ms\n`;
  return `listen: 127.0.0.1:0
admin: 127.0.0.1:0
workers: ${workers}
upstreams:
  practice:
    url: ${upstream}
${timing}    rateLimit: {learnFromLatency: ${learnFromLatency}}
routes:
  - {path: /, upstream: practice}
clients:
  key: [header:x-api-key, ip]
`;
}

/**
 * Retries the same requests as Tidegate, equally often. nginx tries each `server` of a block once, so the upstream is listed
 * four times; with the default `max_fails` of 1 it would reject everything for ten seconds after four rejections.
 */
export function nginxConfig(port: number, upstream: string, folder: string): string {
  return nginxFrame(
    folder,
    'off',
    `  upstream practice {
${`    server ${upstream} max_fails=0;\n`.repeat(4)}    keepalive 256;
    keepalive_requests 1000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://practice;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_connect_timeout 5s;
      proxy_read_timeout 5s;
      proxy_next_upstream error timeout http_429 http_503 non_idempotent;
      proxy_next_upstream_tries 4;
      proxy_next_upstream_timeout 10s;
    }
  }
`,
  );
}

/** The queue of an HAProxy in front of its server. */
export interface HaproxyQueue {
  /** Of the server. */
  readonly maxconn: number;
  /** A request that waits for longer is answered 503. */
  readonly timeout: Millis;
}

/**
 * Retries the same requests as Tidegate, equally often.
 * @param statuses HAProxy 2.6 cannot retry on 429
 * @param queue if it limits the requests at the server; requests whose clients have left are then removed
 */
export function haproxyConfig(
  port: number,
  upstream: string,
  statuses: '429 503' | '503',
  queue?: HaproxyQueue,
): string {
  const queueing = queue === undefined ? '' : `  timeout queue ${queue.timeout}ms\n  option abortonclose\n`;
  return `global
  maxconn 4096
defaults
  mode http
  timeout client 30s
  timeout connect 5s
  timeout server 5s
  option redispatch
  retries 3
  retry-on conn-failure empty-response response-timeout ${statuses}
  http-reuse always
${queueing}listen practice
  bind 127.0.0.1:${port}
  server upstream ${upstream}${queue === undefined ? '' : ` maxconn ${queue.maxconn}`}
`;
}
