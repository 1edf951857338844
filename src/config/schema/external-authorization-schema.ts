import { z } from 'zod';
import { Secret } from './name-schemas.ts';
import { PathPrefix } from './route-schema.ts';

/** Checks for an ingress that sends the admitted requests itself. Only `clients.trustedProxies` may send checks. */
export const ExternalAuthorizationSchema = z.strictObject({
  path: PathPrefix.prefault('/check').describe(
    'Where proxies of clients.trustedProxies ask whether a request may pass; other clients cannot use paths below it.',
  ),
  reportPath: PathPrefix.prefault('/report').describe(
    'Where the sender of a request reports its outcome, with the token.',
  ),
  unrouted: z
    .enum(['pass', 'refuse'])
    .prefault('pass')
    .describe('Whether a request that no route matches passes, or gets a 404.'),
  token: Secret.optional().describe(
    'Bearer token required for reports, at least 16 characters; without it, reports are not accepted.',
  ),
});
