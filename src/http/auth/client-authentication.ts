import { isDeepStrictEqual } from 'node:util';
import { isJwksUrl } from '../../config/schema/auth/client-auth-schema.ts';
import type { ClientAuthConfig } from '../../config/schema/config-schema.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import { withoutHeader } from '../headers/raw-headers.ts';
import type { Problem } from '../response/problem.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { ApiKeyCheck } from './api-key-check.ts';
import { authProblem, challengeFor } from './auth-problems.ts';
import type { AuthenticatedRequest, AuthResult, CredentialCheck } from './auth-types.ts';
import { rejected } from './auth-types.ts';
import { CertificateCheck } from './certificate-check.ts';
import { makeJwksFetch } from './fetch-jwks.ts';
import { type Jwks, jwksFromFile, RemoteJwks } from './jwks.ts';
import { JwtCheck } from './jwt-check.ts';

export interface ClientAuthenticationParts {
  readonly clock: Clock;
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  readonly listen: EventSink;
}

/**
 * Verifies who sends a request, by its credential. The first kind of credential that a request has decides: a bad one is rejected, and
 * no other is tried. A client certificate is the last kind, because several clients may share a connection. Files and fetched keys
 * outlive a reload that does not change `clients.auth`.
 */
export class ClientAuthentication {
  /** Headers with credentials, in lower case. */
  readonly headers: ReadonlySet<string>;
  readonly #config: ClientAuthConfig;
  readonly #checks: readonly CredentialCheck[];
  readonly #jwt: JwtCheck | undefined;
  readonly #certificate: CertificateCheck | undefined;
  /** API keys and tokens are in one header. */
  readonly #hasSharedHeader: boolean;

  /** @throws an Error with the path, if a file cannot be used */
  constructor(config: ClientAuthConfig, { clock, wallClock, listen }: ClientAuthenticationParts) {
    this.#config = config;
    const report = (setting: string) => (problem: string | undefined) =>
      listen({ type: 'auth-source', setting: `clients.auth.${setting}`, problem });
    const { apiKeys, jwt, certificate } = config;
    this.#certificate = certificate && new CertificateCheck(certificate, wallClock);
    if (jwt !== undefined) this.#jwt = new JwtCheck(jwt, openJwks(jwt, clock, report('jwt.jwks')), wallClock);
    const keys =
      apiKeys &&
      new ApiKeyCheck(apiKeys, {
        ...{ clock, wallClock, onFile: report('apiKeys.file') },
        onExpiring: ({ id, client, expiresAt }) => listen({ type: 'api-key-expires', keyId: id, client, expiresAt }),
      });
    // A token has no prefix to be known by, so that API keys come first where both are in Authorization.
    this.#checks = [keys, this.#jwt].filter((check) => check !== undefined);
    this.headers = new Set(this.#checks.map(({ header }) => header));
    this.#hasSharedHeader = this.headers.size < this.#checks.length;
  }

  isSameAs(config: ClientAuthConfig): boolean {
    return isDeepStrictEqual(config, this.#config);
  }

  get bounds(): readonly ResourceBound[] {
    return this.#jwt === undefined ? [] : [this.#jwt.bound];
  }

  /** A promise only if a signature must be verified. Never rejects. */
  authenticate(request: AuthenticatedRequest): AuthResult | Promise<AuthResult> {
    let isMalformed = false;
    for (const check of this.#checks) {
      const value = request.headers[check.header];
      if (value === undefined || value === '') continue;
      const credential = readCredential(check.header, String(value));
      if (credential !== undefined && (!this.#hasSharedHeader || check.accepts(credential))) {
        return check.verify(credential);
      }
      isMalformed = true;
    }
    if (isMalformed) return rejected('malformed');
    return this.#certificate?.verify(request.socket) ?? rejected('missing');
  }

  /** Removes the credential, so that nothing after it forwards, stores or depends on it; unless the configuration forwards it. */
  withhold(request: HttpServerRequest): void {
    if (this.#config.forward) return;
    for (const header of this.headers) {
      if (request.headers[header] === undefined) continue;
      // Copies: a program that mounts the proxy uses the originals too.
      const { [header]: _, ...headers } = request.headers;
      request.headers = headers;
      request.rawHeaders = withoutHeader(request.rawHeaders, header);
    }
  }

  problemFor(why: Extract<AuthResult, { readonly kind: 'rejected' }>['why']): Problem {
    return authProblem(why, challengeFor(this.#checks, this.#certificate !== undefined, why));
  }
}

/** In Authorization, the credential follows `Bearer` (RFC 6750 §2.1); undefined if it does not. */
function readCredential(header: string, value: string): string | undefined {
  if (header !== 'authorization') return value;
  return /^bearer +(?<credential>\S+)$/i.exec(value)?.groups?.['credential'];
}

function openJwks(
  { jwks, ca, tokenFile }: NonNullable<ClientAuthConfig['jwt']>,
  clock: Clock,
  report: (problem: string | undefined) => void,
): Jwks {
  if (!isJwksUrl(jwks)) return jwksFromFile(jwks, clock, report);
  return new RemoteJwks({ fetch: makeJwksFetch({ url: jwks, ca, tokenFile }), clock, onFetch: report });
}
