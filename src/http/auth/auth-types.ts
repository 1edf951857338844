import type { AuthRejection } from '../../core/events/event-labels.ts';
import type { HttpServerRequest } from '../server/server-request.ts';

/** A client that has proven its name. */
export interface Principal {
  readonly name: string;
  readonly provenBy: 'api_key' | 'jwt' | 'certificate';
}

export type AuthResult =
  | { readonly kind: 'known'; readonly principal: Principal }
  | { readonly kind: 'rejected'; readonly why: AuthRejection };

/** One kind of credential. */
export interface CredentialCheck {
  /** The header that has it, in lower case. */
  readonly header: string;
  /** Whether a text in this header is of this kind, valid or not. */
  accepts(credential: string): boolean;
  /** A promise only if the result is not known at once. Never rejects. */
  verify(credential: string): AuthResult | Promise<AuthResult>;
}

/** The parts of a request that a credential may be in. */
export type AuthenticatedRequest = Pick<HttpServerRequest, 'headers' | 'socket'>;

export function rejected(why: AuthRejection): AuthResult {
  return { kind: 'rejected', why };
}
