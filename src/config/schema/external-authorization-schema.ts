import { z } from 'zod';
import { DescriptorFieldSchema } from '../values/descriptor-field.ts';
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
  grpc: z
    .boolean()
    .prefault(false)
    .describe('Answer the gRPC checks and rate limit requests of Envoy on the port of the proxy.'),
  descriptors: z
    .record(z.string().min(1).max(128), DescriptorFieldSchema)
    .prefault({})
    .describe('What the entries of rate limit descriptors mean, by their key; other keys name headers.'),
  token: Secret.optional().describe(
    'Bearer token required for reports, at least 16 characters; without it, reports are not accepted.',
  ),
});
