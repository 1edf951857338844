import type { DescriptorField } from '../../config/values/descriptor-field.ts';
import type { ClassRatePolicies } from '../headers/rate-limit-policy.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ClientAuthentication } from '../auth/client-authentication.ts';
import type { CheckRouter } from '../ext-authz/check-router.ts';
import type { HashFunction } from './client-hash.ts';
import type { IdentifyClient } from './client-identity.ts';
import type { UpstreamTarget } from './route.ts';
import type { Router } from './router.ts';

/** The check API of ingresses: checks and reports. */
export interface ExtAuthzSettings {
  readonly checkPath: string;
  readonly reportPath: string;
  /** SHA-256 of the token that reports must carry; undefined: reports are refused. */
  readonly tokenDigest: Buffer | undefined;
  /** Of the routes that answer checks. */
  readonly router: CheckRouter;
  /** Whether requests without a route are allowed. */
  readonly allowsUnrouted: boolean;
  /** What the entries of rate limit descriptors mean, by key. */
  readonly descriptors: ReadonlyMap<string, DescriptorField>;
  /** By name. */
  readonly targets: ReadonlyMap<string, UpstreamTarget>;
}

/** What clients of a class may use; undefined: all. */
export interface ClientAccess {
  /** By name. */
  readonly routes: ReadonlySet<string> | undefined;
  readonly methods: ReadonlySet<string> | undefined;
}

/** The compiled configuration of requests. Immutable: a reload replaces it, and an exchange keeps the one of its arrival. */
export interface Snapshot {
  readonly router: Router;
  /** Undefined if the check API is off. */
  readonly check: ExtAuthzSettings | undefined;
  /** Undefined: nobody needs a credential. */
  readonly authentication: ClientAuthentication | undefined;
  /** By name of the client class; classes without restrictions are absent. */
  readonly accessOf: ReadonlyMap<string, ClientAccess>;
  readonly identifyClient: IdentifyClient;
  /** See `makeAddressHash`. */
  readonly hashAddress: HashFunction;
  /** RateLimit-Policy of the client classes, by name. */
  readonly ratePolicies: ReadonlyMap<string, ClassRatePolicies>;
  /** Removes from a path what identifies clients. */
  readonly redactPath: (path: string) => string;
  /** Whether this is the address of a trusted proxy in front. */
  readonly isTrustedProxy: (address: string) => boolean;
  readonly addsForwarded: boolean;
  readonly bodyIdleTimeout: Millis;
  /** Minimum rate of uploads in bytes per second; 0: none. */
  readonly minBodyRate: number;
  /** Minimum rate at which clients read responses, in bytes per second; 0: none. */
  readonly minReadRate: number;
}
