import { isIP } from 'node:net';
import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import type { PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { checkUrlSchemes } from './url-scheme-rules.ts';
import { upstreamOrigins } from '../schema/upstream-schema.ts';
import { PRACTICE_URL, unixSocketPath } from '../values/upstream-url.ts';

/** The endpoints of an upstream: exactly one of url and urls, and endpoints of one scheme. */
export function* checkEndpoints(path: Path, upstream: PartialUpstream, isWritten: IsWritten): Generator<RuleFinding> {
  const { urlKeys, urls, outlierDetection } = upstream;
  if (urlKeys?.length === 0) {
    const why = isWritten([...path, 'provider']) ? ': the preset of its provider has none' : '';
    yield mistakeAt([...path, 'url'], `missing${why}`);
  }
  if (urlKeys?.length === 2) {
    yield { ...mistakeAt([...path, 'urls'], 'url and urls exclude each other: keep one'), at: 'key' };
  }
  yield* checkUrlList([...path, 'urls'], urls ?? []);
  yield* checkUrlSchemes(path, upstream);
  if (outlierDetection !== undefined && outlierDetection.maxEjectionTime < outlierDetection.baseEjectionTime) {
    const key = isWritten([...path, 'outlierDetection', 'maxEjectionTime']) ? 'maxEjectionTime' : 'baseEjectionTime';
    yield mistakeAt([...path, 'outlierDetection', key], 'maxEjectionTime is below baseEjectionTime');
  }
  const origins = upstreamOrigins(upstream);
  if (origins.length === 1 && isWritten([...path, 'outlierDetection'])) {
    yield warningAt([...path, 'outlierDetection'], 'has no effect: there is only one endpoint', 'key');
  }
  if (origins.length === 1 && upstream.healthCheck !== undefined) {
    yield warningAt([...path, 'healthCheck'], 'affects no request: there is only one endpoint', 'key');
  }
  yield* checkLimitOwner([...path, 'rateLimit', 'of'], upstream, origins.length);
  if (origins.length > 0 && origins.every(isIpAddress) && isWritten([...path, 'dnsRefresh'])) {
    yield warningAt([...path, 'dnsRefresh'], 'has no effect: no endpoint has a host name to look up', 'key');
  }
}

function* checkLimitOwner(
  path: Path,
  { rateLimit, limits = [] }: PartialUpstream,
  endpoints: number,
): Generator<RuleFinding> {
  if (rateLimit?.of === undefined) return;
  if (endpoints === 1) yield warningAt(path, 'has no effect: there is only one endpoint', 'key');
  if (rateLimit.of === 'account') return;
  const { scope } = rateLimit;
  if (scope !== 'upstream') {
    yield mistakeAt(
      path,
      `a limit of each ${scope} says nothing about an endpoint: write of: account, or scope: upstream`,
    );
  } else if (limits.length > 0) {
    yield mistakeAt(path, 'limits concern parts of the requests, not an endpoint: write of: account, or remove limits');
  }
}

function* checkUrlList(path: Path, urls: readonly string[]): Generator<RuleFinding> {
  const [first = ''] = urls;
  for (const [i, url] of urls.entries()) {
    const firstIndex = urls.indexOf(url);
    if (url === PRACTICE_URL) {
      yield mistakeAt([...path, i], 'practice cannot be one of several endpoints: write url: practice');
    } else if (firstIndex < i) yield mistakeAt([...path, i], `the same as urls[${firstIndex}]`);
    else if (urlScheme(url) !== urlScheme(first) && first !== PRACTICE_URL) {
      yield mistakeAt(
        [...path, i],
        `${urlScheme(url)}, where urls[0] is ${urlScheme(first)}: all urls need the same scheme`,
      );
    }
  }
}

function urlScheme(url: string): string {
  return url.slice(0, url.indexOf(':'));
}

function isIpAddress(url: string): boolean {
  return (
    url === PRACTICE_URL ||
    unixSocketPath(url) !== undefined ||
    isIP(new URL(url).hostname.replace(/^\[|\]$/g, '')) !== 0
  );
}
