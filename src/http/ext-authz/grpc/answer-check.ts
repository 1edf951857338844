import { status } from '@grpc/grpc-js';
import type { EnvoyCheckResponse, EnvoyHeader, EnvoyHeaderOption } from './envoy-messages.ts';
import type { CheckAnswer } from './run-check.ts';

/** What the upstream gets with an allowed request. They replace headers of these names from the client. */
const FOR_UPSTREAM = ['tidegate-permit'];
const FOR_CLIENT = ['tidegate-request-id', 'tidegate-would-have'];
/** The headers of a refusal that are about Tidegate's own connections. Envoy computes the length itself. */
const NOT_FORWARDED: ReadonlySet<string> = new Set(['connection', 'content-length', 'via', 'x-request-id']);

/** The form of an answer that `Authorization.Check` returns. */
export function toCheckResponse({ status: code, headers, body }: CheckAnswer): EnvoyCheckResponse {
  if (code === 200) {
    return {
      status: { code: status.OK },
      okResponse: {
        headers: selectHeaders(headers, FOR_UPSTREAM).map(replacing),
        responseHeadersToAdd: selectHeaders(headers, FOR_CLIENT).map(replacing),
      },
    };
  }
  return {
    status: { code: rpcCodeOf(code) },
    deniedResponse: { status: { code }, headers: clientHeaders(headers).map(replacing), body },
  };
}

export function selectHeaders(headers: ReadonlyMap<string, string>, names: readonly string[]): EnvoyHeader[] {
  return names.flatMap((key) => {
    const value = headers.get(key);
    return value === undefined ? [] : [{ key, value }];
  });
}

/** The headers that the client gets with a refusal. */
export function clientHeaders(headers: ReadonlyMap<string, string>): EnvoyHeader[] {
  return Array.from(headers, ([key, value]) => ({ key, value })).filter(({ key }) => !NOT_FORWARDED.has(key));
}

function replacing(header: EnvoyHeader): EnvoyHeaderOption {
  return { header, appendAction: 'OVERWRITE_IF_EXISTS_OR_ADD' };
}

/** The gRPC code for a status: https://grpc.github.io/grpc/core/md_doc_http-grpc-status-mapping.html, and 429 as quotas. */
function rpcCodeOf(code: number): status {
  switch (code) {
    case 400:
      return status.INVALID_ARGUMENT;
    case 401:
      return status.UNAUTHENTICATED;
    case 429:
      return status.RESOURCE_EXHAUSTED;
    case 503:
      return status.UNAVAILABLE;
    default:
      return status.PERMISSION_DENIED;
  }
}
