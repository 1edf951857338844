import { listOf } from '../../config/rules/nested-limit-rules.ts';
import { MAX_STREAMS } from '../../config/schema/listen-schema.ts';
import type { Config, UpstreamConfig } from '../../config/schema/config-schema.ts';
import { writeSize } from '../../config/values/unit-schemas.ts';
import { MOST_BYTES } from '../../telemetry/explanations/explanation-recorder.ts';

/**
 * Bytes that one of them keeps in memory, rounded up from what was measured on Node 24: 10 to 13 KiB for a request that
 * waits (its connection, headers and account, without a body), 160 to 170 B for a client (300 B where the
 * upstream's name is longer than 38 characters), 4.1 KiB for a limit of its own.
 */
export const KEPT = { request: 15 * 1024, client: 256, limit: 5 * 1024 } as const;

/** store/upstream-nested-limits.ts: of each name. */
const MOST_KEYED = 1000;
const MUCH_MEMORY = 1024 ** 3;

/** What all of it may take together, and each part. */
export function describeMemory(config: Config): string[] {
  const { limits, clients, upstreams, mode, listen } = config;
  const own = Object.values(upstreams).some(({ rateLimit, limits: nested }) =>
    [rateLimit, ...nested].some(({ scope }) => scope !== 'upstream'),
  );
  const keyed = Object.values(upstreams).reduce((sum, each) => sum + each.limits.filter(isKeyed).length, 0);
  const waiting = Math.min(
    limits.requests,
    limits.connections * (listen.http2 ? MAX_STREAMS : 1),
    Object.values(upstreams).reduce((sum, { queue }) => sum + (queue.maxWait === 0 ? 0 : queue.maxDepth), 0),
  );
  const parts = [
    { what: 'request bodies kept for retries', bytes: limits.replayMemory },
    {
      what: `${waiting} requests that ${mode === 'observe' ? 'would wait' : 'wait'} in queues, about ${about(KEPT.request)} each`,
      bytes: waiting * KEPT.request,
    },
    {
      what: `${clients.maxTracked} clients, about ${about(KEPT.client)} each`,
      bytes: clients.maxTracked * KEPT.client,
    },
    { what: 'stories of requests, for explanations', bytes: MOST_BYTES },
    ...(keyed > 0
      ? [
          {
            what: `${keyed * MOST_KEYED} nested limits of endpoints and the like, about ${about(KEPT.limit)} each`,
            bytes: keyed * MOST_KEYED * KEPT.limit,
          },
        ]
      : []),
    ...(own
      ? [
          {
            what: `${clients.maxTracked} limits of single clients or credentials, about ${about(KEPT.limit)} each`,
            bytes: clients.maxTracked * KEPT.limit,
          },
        ]
      : []),
  ];
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  return [
    `memory: up to ${about(total)}, beside what Node itself takes and what is being sent`,
    ...parts.map(({ what, bytes }) => `  ${about(bytes)}: ${what}`),
    ...(total > MUCH_MEMORY
      ? [
          '  warning: that is more than 1GiB: lower limits.replayMemory, clients.maxTracked or queue.maxDepth, or provide it',
        ]
      : []),
  ];
}

/** Whether there is one for each endpoint or the like. */
function isKeyed({ scope, each, match }: UpstreamConfig['limits'][number]): boolean {
  if (scope !== 'upstream') return false; // those of clients are counted with the others of theirs
  return each.length > 0 || listOf(match.path).some((path) => path.includes('{'));
}

/** Whole units where it is many of them. */
function about(bytes: number): string {
  for (const unit of [1024 ** 3, 1024 ** 2, 1024]) {
    if (bytes >= 10 * unit) return writeSize(Math.ceil(bytes / unit) * unit);
  }
  return writeSize(bytes);
}
