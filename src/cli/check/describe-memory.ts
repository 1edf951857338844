import { toList } from '../../config/values/one-or-many.ts';
import { MAX_CONCURRENT_STREAMS } from '../../config/schema/listen-schema.ts';
import type { Config, UpstreamConfig } from '../../config/schema/config-schema.ts';
import { modeOfConfig } from '../../config/values/enforcement-mode.ts';
import { quotaBytesOfClient } from '../../config/schema/limits/quota-schema.ts';
import { MAX_RECORD_BYTES } from '../../telemetry/explanations/explanation-recorder.ts';
import { formatBytes } from '../format-bytes.ts';

/**
 * Memory in bytes for one item, rounded up from measurements on Node 24: 10 to 13 KiB for a queued request (connection,
 * headers and bookkeeping, without a body), 160 to 170 B for a client (300 B if the upstream's name is longer than 38
 * characters), 4.1 KiB for a limit.
 */
export const BYTES_EACH = { request: 16 * 1024, client: 256, limit: 6 * 1024 } as const;

/** Limits of each name that are kept (store/upstream-nested-limits.ts). */
const MAX_KEYED_LIMITS = 1000;
const MEMORY_WARNING_BYTES = 1024 ** 3;
const MEMORY_ADVICE = 'provide that much, or lower limits.replayMemory, clients.maxTracked or queue.maxDepth';

/** Maximum memory, in total and by part, one line each. */
export function describeMemory(config: Config): {
  readonly lines: readonly string[];
  readonly warnings: readonly string[];
} {
  const { limits, clients, upstreams, listen } = config;
  const own =
    Object.values(clients.classes).some(({ perClient }) => perClient?.maxRate !== undefined) ||
    Object.values(upstreams).some(({ rateLimit, limits: nested }) =>
      [rateLimit, ...nested].some(({ scope }) => scope !== 'upstream'),
    );
  const keyed = Object.values(upstreams).reduce((sum, each) => sum + each.limits.filter(isKeyed).length, 0);
  const waiting = Math.min(
    limits.requests,
    limits.connections * (listen.http2 ? MAX_CONCURRENT_STREAMS : 1),
    Object.values(upstreams).reduce((sum, { queue }) => sum + (queue.maxWait === 0 ? 0 : queue.maxDepth), 0),
  );
  const quotaBytes = quotaBytesOfClient(clients.classes);
  const parts = [
    { what: 'request bodies kept for retries', bytes: limits.replayMemory },
    {
      what: `${waiting} requests that ${modeOfConfig(config) === 'observe' ? 'would wait' : 'wait'} in queues, about ${formatBytes(BYTES_EACH.request)} each`,
      bytes: waiting * BYTES_EACH.request,
    },
    {
      what: `${clients.maxTracked} clients, about ${formatBytes(BYTES_EACH.client)} each`,
      bytes: clients.maxTracked * BYTES_EACH.client,
    },
    { what: 'explanations of requests', bytes: MAX_RECORD_BYTES },
    ...(keyed > 0
      ? [
          {
            what: `${keyed * MAX_KEYED_LIMITS} nested limits per path, method or header, about ${formatBytes(BYTES_EACH.limit)} each`,
            bytes: keyed * MAX_KEYED_LIMITS * BYTES_EACH.limit,
          },
        ]
      : []),
    ...(own
      ? [
          {
            what: `${clients.maxTracked} limits of single clients or credentials, about ${formatBytes(BYTES_EACH.limit)} each`,
            bytes: clients.maxTracked * BYTES_EACH.limit,
          },
        ]
      : []),
    ...(quotaBytes > 0
      ? [
          {
            what: `quotas of single clients, for ${clients.maxTracked} clients at each upstream; a tenth of the heap at most`,
            bytes: clients.maxTracked * Object.keys(upstreams).length * quotaBytes,
          },
        ]
      : []),
  ];
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    lines: [
      `memory: up to ${formatBytes(total)}, in addition to Node itself and data in transit`,
      ...parts.map(({ what, bytes }) => `  ${formatBytes(bytes)}: ${what}`),
    ],
    warnings: total > MEMORY_WARNING_BYTES ? [`memory: up to ${formatBytes(total)}: ${MEMORY_ADVICE}`] : [],
  };
}

/** Whether the entry makes one limit per path segment, method or header. */
function isKeyed({ scope, each, match }: UpstreamConfig['limits'][number]): boolean {
  if (scope !== 'upstream') return false; // counted with the limits of clients
  return each.length > 0 || toList(match.path).some((path) => path.includes('{'));
}
