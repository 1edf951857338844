import { z } from 'zod';
import { Cors } from './cors-schema.ts';
import { Method } from './name-schemas.ts';
import { Poll } from './poll-schema.ts';
import { RetryOverride } from './retry-schema.ts';
import { PositiveDuration } from '../values/unit-schemas.ts';
import type { Reading } from '../values/text-codec.ts';
import { misread, written } from '../values/text-codec.ts';

const prefix = { type: 'string', pattern: String.raw`^/[^?#\s*\\]*$` };

export const PathPrefix = written<string>({
  expected: 'a path such as /v1',
  forms: [prefix],
  read: readPathPrefix,
  write: (path) => path,
});

const Host = written<string>({
  expected: 'a host name such as api.example.com',
  forms: [{ type: 'string' }],
  read: readHost,
  write: (host) => host,
});

/** Which requests go to which upstream. The longest prefix wins. */
export const Route = z.strictObject({
  path: PathPrefix.prefault('/').describe('Requests whose path starts with this.'),
  host: Host.optional().describe('Only requests for this host.'),
  methods: z.array(Method).min(1).optional().describe('Only requests with one of these methods.'),
  upstream: z.string().describe('The name of the upstream they go to.'),
  rewritePrefix: PathPrefix.optional().describe('What takes the place of path.'),
  timeout: PositiveDuration.optional().describe('Instead of the upstream’s timeout.'),
  perTryTimeout: PositiveDuration.optional().describe('Instead of the upstream’s perTryTimeout.'),
  check: z
    .enum(['also', 'only', 'never'])
    .optional()
    .describe('Whether it answers checks: also, as well as requests, if absent; only, and no requests; or never.'),
  retry: RetryOverride.optional().describe('Instead of the upstream’s retry, key by key.'),
  cors: Cors.optional().describe(
    'What pages of other origins may do: pass-through, if absent, leaves that to the upstream; or {origins, …}, and preflights are answered here (docs/cors.md).',
  ),
  poll: Poll.optional().describe('Ask again, for clients that wait, for what is not ready yet; {} for the defaults.'),
});

function readPathPrefix(input: string | number): Reading<string> {
  const path = String(input);
  if (path.endsWith('*')) return misread('a path is a prefix already', confirm(path.replace(/\*+$/, '')));
  if (!path.startsWith('/')) return misread('a path starts with /', confirm(`/${path}`));
  if (/[?#\s*\\]/.test(path)) return misread('a path has no query, fragment, space, backslash or wildcard');
  // No request gets this far with one of these, so the route would never be taken.
  if (/\/\/|\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path)) return misread('a path has no // and no dot segments');
  return { ok: true, value: path };
}

function confirm(path: string): string | undefined {
  return readPathPrefix(path).ok ? path : undefined;
}

/** In lower case, without a port. */
function readHost(input: string | number): Reading<string> {
  const host = String(input).toLowerCase();
  if (/^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$|^\[[0-9a-f:.]+\]$/.test(host)) {
    return { ok: true, value: host };
  }
  const [, name] = /^(?:https?:\/\/)?([a-z0-9.-]+)(?::\d+)?\/?$/.exec(host) ?? [];
  return misread('expected a host name without scheme, port or wildcard', name);
}
