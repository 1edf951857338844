import { z } from 'zod';
import { CostSchema } from './limits/cost-schema.ts';
import { CorsSchema } from './cors-schema.ts';
import { AsyncSchema } from './delivery/async-schema.ts';
import { DeliverySchema } from './delivery/delivery-schema.ts';
import { Method } from './name-schemas.ts';
import { PollSchema } from './poll-schema.ts';
import { RetryOverrideSchema } from './retry-schema.ts';
import { PositiveDuration } from '../values/unit-schemas.ts';
import { VerifySchema } from './webhooks/verify-schema.ts';
import type { ParseResult } from '../values/text-codec.ts';
import { parseFailure, textCodec } from '../values/text-codec.ts';

const prefix = { type: 'string', pattern: String.raw`^/[^?#\s*\\]*$` };

export const PathPrefix = textCodec<string>({
  expected: 'a path such as /v1',
  forms: [prefix],
  parse: parsePathPrefix,
  format: (path) => path,
});

const HostSchema = textCodec<string>({
  expected: 'a host name such as api.example.com',
  forms: [{ type: 'string' }],
  parse: parseHost,
  format: (host) => host,
});

/** Which requests go to which upstream. The longest prefix wins. */
export const RouteSchema = z.strictObject({
  path: PathPrefix.prefault('/').describe('Path prefix of the requests; the longest matching prefix wins.'),
  host: HostSchema.optional().describe('Only requests for this host.'),
  methods: z.array(Method).min(1).optional().describe('Only requests with one of these methods.'),
  upstream: z.string().describe('The name of the upstream that receives them.'),
  rewritePrefix: PathPrefix.optional().describe('Replaces the prefix path in the request to the upstream.'),
  timeout: PositiveDuration.optional().describe('Overrides timeout of the upstream.'),
  perTryTimeout: PositiveDuration.optional().describe('Overrides perTryTimeout of the upstream.'),
  check: z
    .enum(['also', 'only', 'never'])
    .optional()
    .describe(
      'Whether the route applies to checks: also (the default): to checks and requests; only: to checks; never: to requests.',
    ),
  cost: CostSchema.optional().describe(
    'What a request of the route costs at rateLimit of its upstream: overrides rateLimit.cost (docs/costs.md).',
  ),
  coalesce: z
    .union([z.boolean(), z.literal('client')])
    .optional()
    .describe(
      'Send equal GET and HEAD requests that wait at the same time once: true: those with the same credentials; client: those of one client (docs/coalescing.md).',
    ),
  stickyAccount: z
    .boolean()
    .optional()
    .describe('Send all requests of a client with the same account, where the upstream has accounts.'),
  retry: RetryOverrideSchema.optional().describe('Overrides retry of the upstream, key by key.'),
  cors: CorsSchema.optional().describe(
    'What pages of other origins may do: pass-through (the default) leaves that to the upstream; with {origins, …}, preflights are answered here (docs/cors.md).',
  ),
  verify: VerifySchema.optional().describe(
    'Accept only requests with a valid signature of their sender, such as webhooks (docs/webhooks.md).',
  ),
  auth: z
    .enum(['required', 'none'])
    .optional()
    .describe(
      'With clients.auth, whether the route needs a credential: required (the default), or none, as for webhooks with a signature.',
    ),
  poll: PollSchema.optional().describe(
    'Poll for a result that is not ready yet while the client waits; {} for the defaults (docs/polling.md).',
  ),
  deliver: DeliverySchema.optional().describe(
    'Store each request, answer it at once and send it to the upstream until it acknowledges it; {} for the defaults (docs/deliveries.md).',
  ),
  async: AsyncSchema.optional().describe(
    'Store a write with Prefer: respond-async, answer it with 202 and send it later; {} for the defaults (docs/deliveries.md).',
  ),
});

function parsePathPrefix(input: string | number): ParseResult<string> {
  const path = String(input);
  if (path.endsWith('*')) {
    return parseFailure(
      'a path already matches as a prefix: leave out the *',
      suggestIfValid(path.replace(/(?<!\*)\*+$/, '')),
    );
  }
  if (!path.startsWith('/')) return parseFailure('a path starts with /', suggestIfValid(`/${path}`));
  if (/[?#\s*\\]/.test(path)) return parseFailure('a path has no query, fragment, space, backslash or wildcard');
  // Requests with one of these are rejected before routing, so the route would never match.
  if (/\/\/|\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path)) return parseFailure('a path has no // and no dot segments');
  return { ok: true, value: path };
}

function suggestIfValid(path: string): string | undefined {
  return parsePathPrefix(path).ok ? path : undefined;
}

/** Returns the host in lower case, without a port. */
function parseHost(input: string | number): ParseResult<string> {
  const host = String(input).toLowerCase();
  if (/^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$|^\[[0-9a-f:.]+\]$/.test(host)) {
    return { ok: true, value: host };
  }
  const [, name] = /^(?:https?:\/\/)?([a-z0-9.-]+)(?::\d+)?\/?$/.exec(host) ?? [];
  return parseFailure('expected a host name without scheme, port or wildcard', name);
}
