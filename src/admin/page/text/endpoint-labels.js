/** Wording and severity of endpoints and their failures. */

/** @import { UpstreamStatus } from '../api-types.ts' */
/** @import { Severity } from './labels.js' */

/**
 * The newest failure of the endpoints that have not responded since. If all have, the last failed attempt.
 * @param {UpstreamStatus} upstream
 */
export function newestFailure({ endpoints, lastFailure }) {
  const failures = endpoints.flatMap(({ failure }) => (failure === null ? [] : [failure]));
  return failures.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))[0] ?? lastFailure ?? undefined;
}

/**
 * No endpoint could be connected to at its last attempt.
 * @param {UpstreamStatus} upstream
 */
export function isUnreachable({ endpoints, acceptedPerSecond }) {
  return (
    acceptedPerSecond === 0 && endpoints.length > 0 && endpoints.every(({ failure }) => failure?.reason === 'connect')
  );
}

/**
 * An endpoint is ejected, or clients are excluded from an account.
 * @param {UpstreamStatus} upstream
 */
export function hasExcluded({ endpoints, accounts }) {
  return endpoints.some(({ healthy }) => !healthy) || accounts.some(({ quarantined }) => quarantined);
}

/**
 * An endpoint whose last attempt got no connection is as critical as an ejected one.
 * @param {UpstreamStatus['endpoints'][number]} endpoint
 * @returns {Severity}
 */
export function endpointSeverity({ healthy, failure }) {
  if (!healthy || failure?.reason === 'connect') return 'critical';
  return failure === null ? 'ok' : 'warning';
}

/** @param {UpstreamStatus['endpoints'][number]} endpoint */
export function formatEndpoint({ endpoint, healthy, failure }) {
  const remarks = [...(healthy ? [] : ['ejected']), ...(failure === null ? [] : [failure.text])];
  return remarks.length === 0 ? endpoint : `${endpoint} – ${remarks.join(', ')}`;
}
