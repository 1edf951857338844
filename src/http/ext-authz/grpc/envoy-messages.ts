/** The parts of Envoy's messages that are used here, as proto-loader decodes them: see scripts/grpc/protos. */

export interface EnvoyHeader {
  readonly key?: string;
  readonly value?: string;
  /** In place of `value`, with `encode_raw_headers`. */
  readonly rawValue?: Buffer;
}

/** envoy.service.auth.v3.CheckRequest */
export interface EnvoyCheckRequest {
  readonly attributes?: {
    readonly source?: {
      readonly address?: { readonly socketAddress?: { readonly address?: string } };
      /** The identity in the client certificate that Envoy has verified. */
      readonly principal?: string;
    };
    readonly request?: {
      readonly http?: {
        readonly method?: string;
        /** With the query. */
        readonly path?: string;
        readonly host?: string;
        /** Repeated headers are joined; pseudo-headers are among them. */
        readonly headers?: Readonly<Record<string, string>>;
        readonly headerMap?: { readonly headers?: readonly EnvoyHeader[] };
      };
    };
    readonly contextExtensions?: Readonly<Record<string, string>>;
  };
}

export interface EnvoyHeaderOption {
  readonly header: EnvoyHeader;
  readonly appendAction: 'OVERWRITE_IF_EXISTS_OR_ADD';
}

/** envoy.service.auth.v3.CheckResponse */
export interface EnvoyCheckResponse {
  readonly status: { readonly code: number };
  readonly okResponse?: {
    readonly headers: readonly EnvoyHeaderOption[];
    readonly responseHeadersToAdd: readonly EnvoyHeaderOption[];
  };
  readonly deniedResponse?: {
    readonly status: { readonly code: number };
    readonly headers: readonly EnvoyHeaderOption[];
    readonly body: string;
  };
}

export interface RateLimitDescriptor {
  readonly entries?: readonly { readonly key?: string; readonly value?: string }[];
  readonly hitsAddend?: { readonly value?: number };
}

/** envoy.service.ratelimit.v3.RateLimitRequest */
export interface RateLimitRequest {
  readonly domain?: string;
  readonly descriptors?: readonly RateLimitDescriptor[];
  /** 0: 1. */
  readonly hitsAddend?: number;
}

export interface DescriptorStatus {
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly currentLimit?: { readonly requestsPerUnit: number; readonly unit: 'SECOND' | 'MINUTE' | 'HOUR' | 'DAY' };
  readonly limitRemaining: number;
  readonly durationUntilReset: { readonly seconds: number; readonly nanos: number };
}

/** envoy.service.ratelimit.v3.RateLimitResponse */
export interface RateLimitResponse {
  readonly overallCode: DescriptorStatus['code'];
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly EnvoyHeader[];
  readonly requestHeadersToAdd: readonly EnvoyHeader[];
  readonly rawBody: Buffer;
}
