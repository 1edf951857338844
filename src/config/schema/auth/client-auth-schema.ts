import { z } from 'zod';
import { Duration } from '../../values/unit-schemas.ts';
import { HeaderName, Method } from '../name-schemas.ts';
import { Pem } from '../tls-schema.ts';

/** Signatures by a private key. HMAC is absent: its key would have to be secret, and a JWKS is public. */
export const JWT_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

/** Longer than this, an expired token would be as good as a valid one. */
const MAX_CLOCK_TOLERANCE = 300_000;

const NamePrefix = z.string().regex(/^[!-~]{1,64}$/, 'expected 1 to 64 printable ASCII characters, without spaces');

const ApiKeysSchema = z.strictObject({
  file: z
    .string()
    .min(1)
    .describe('File with the hashes of the keys; tidegate clients add creates keys. Read again when it changes.'),
  header: HeaderName.prefault('Tidegate-Key').describe(
    'Request header with the key; in Authorization, the key follows Bearer.',
  ),
});

const JwtSchema = z.strictObject({
  issuer: z.string().min(1).describe('The iss claim that a token must have.'),
  audience: z
    .array(z.string().min(1))
    .min(1)
    .describe('Audiences, one of which the aud claim of a token must contain.'),
  jwks: z
    .string()
    .min(1)
    .superRefine((text, context) => {
      const message = findJwksDefect(text);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .describe(
      'The public keys of the issuer: an https URL of a JWKS, or the path of a file, read again when it changes.',
    ),
  ca: Pem.optional().describe(
    'CA certificates to trust for the JWKS URL in place of the system’s: a PEM file, or PEM text.',
  ),
  tokenFile: z
    .string()
    .min(1)
    .optional()
    .describe('File with a bearer token for the JWKS URL, read at each fetch; such as that of a Kubernetes pod.'),
  algorithms: z
    .array(z.enum(JWT_ALGORITHMS))
    .min(1)
    .prefault(['RS256', 'ES256', 'EdDSA'])
    .describe('Signature algorithms that are accepted.'),
  header: HeaderName.prefault('Authorization').describe(
    'Request header with the token; in Authorization, the token follows Bearer.',
  ),
  nameClaim: z.string().min(1).prefault('sub').describe('The claim that is the name of the client.'),
  namePrefix: NamePrefix.optional().describe(
    'Put before the name, so that no token has the name of a client with an API key.',
  ),
  clockTolerance: Duration.refine((time) => time <= MAX_CLOCK_TOLERANCE, 'must be at most 5m')
    .prefault('30s')
    .describe('How far the clock of the issuer may differ.'),
});

const CertificateSchema = z.strictObject({
  name: z
    .enum(['subject', 'san'])
    .prefault('subject')
    .describe(
      'Where the name of the client is: subject (its common name), or san (its first URI, else DNS name, else email address).',
    ),
  namePrefix: NamePrefix.optional().describe(
    'Put before the name, so that no certificate has the name of another client.',
  ),
});

/** Which clients are accepted, and what proves their names. */
export const ClientAuthSchema = z
  .strictObject({
    apiKeys: ApiKeysSchema.optional().describe('API keys.'),
    jwt: JwtSchema.optional().describe('JSON Web Tokens of one issuer (RFC 7519).'),
    certificate: CertificateSchema.optional().describe(
      'TLS client certificates of listen.tls.clientCa; {} for the defaults.',
    ),
    forward: z
      .boolean()
      .prefault(false)
      .describe('Also forward the credential to the upstream; by default, its header is removed.'),
  })
  .refine(({ apiKeys, jwt, certificate }) => (apiKeys ?? jwt ?? certificate) !== undefined, {
    error: 'needs apiKeys, jwt or certificate: with none, no client could be accepted',
  })
  .meta({ minProperties: 1 });

/** What the clients of a class may do. */
export const AllowSchema = z
  .strictObject({
    routes: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('Names of the routes that they may use, as in metrics: methods, host and path. All if absent.'),
    methods: z.array(Method).min(1).optional().describe('Methods that they may use. All if absent.'),
  })
  .refine(({ routes, methods }) => routes !== undefined || methods !== undefined, {
    error: 'needs routes or methods: with neither, it would restrict nothing',
  })
  .meta({ minProperties: 1 });

/** Whether the text is a URL, and not the path of a file. */
export function isJwksUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
}

function findJwksDefect(text: string): string | undefined {
  if (!isJwksUrl(text)) return undefined;
  const url = URL.parse(text);
  if (url === null) return 'not a URL';
  if (url.username !== '' || url.password !== '') return 'a URL without user and password: use tokenFile';
  const isLocal = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLocal)) return undefined;
  return 'expected https: whoever can change the keys on their way can issue tokens';
}
