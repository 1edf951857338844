/** Rules across keys: settings that have to agree with each other. */
import type { Millis } from '../../core/scalars.ts';
import { isLoopback, formatListenAddress } from '../values/listen-address.ts';
import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import { checkAccounts } from './account-rules.ts';
import { checkExternalAuthorization } from './external-authorization-rules.ts';
import { checkAsyncWrites } from './async-rules.ts';
import { checkClientAuth } from './client-auth-rules.ts';
import { checkCosts } from './cost-rules.ts';
import { checkCors } from './cors-rules.ts';
import { checkDeliveries } from './delivery-rules.ts';
import { checkEndpoints } from './endpoint-rules.ts';
import { checkFallbacks } from './fallback-rules.ts';
import type { IdempotencyContext } from './idempotency-rules.ts';
import { checkIdempotency } from './idempotency-rules.ts';
import { checkNestedLimits } from './nested-limit-rules.ts';
import { checkRateBounds } from './rate-bound-rules.ts';
import { checkCertificatePair } from './certificate-pair-rule.ts';
import { checkCoalescing } from './coalesce-rules.ts';
import { checkPolls } from './poll-rules.ts';
import { checkClientQuotas, checkQuotas, checkQuotaTopology } from './quota-rules.ts';
import { checkRetries } from './retry-rules.ts';
import { checkState } from './state-rules.ts';
import { checkThrottle } from './throttle-rule-checks.ts';
import { checkVerify } from './verify-rules.ts';
import { UNIX_PEER } from '../schema/clients-schema.ts';
import type { PartialConfig, PartialRoute, PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { NAME_EXPECTED, NAME_PATTERN } from '../schema/name-schemas.ts';
import { suggest } from '../values/suggest.ts';
import { upstreamOrigins } from '../schema/upstream-schema.ts';
import { PRACTICE_URL } from '../values/upstream-url.ts';

export function* checkConfigRules(draft: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  yield* checkAddresses(draft, isWritten);
  yield* checkListener(draft);
  yield* checkRouteAndUpstreamCounts(draft);
  yield* checkNames(['upstreams'], draft.upstreamNames ?? []);
  yield* checkNames(['clients', 'classes'], draft.classNames);
  yield* checkNames(['clients', 'names'], draft.clientNames);
  const context = { identities: identityHeaders(draft), store: draft.state.store };
  for (const [name, upstream] of draft.upstreams) yield* checkUpstream(name, upstream, context, isWritten);
  yield* checkFallbacks(draft);
  yield* checkAccounts(draft, isWritten);
  yield* checkCosts(draft, isWritten);
  yield* checkRoutes(draft);
  yield* checkExternalAuthorization(draft, isWritten);
  yield* checkRetries(draft);
  yield* checkPolls(draft);
  yield* checkCoalescing(draft);
  yield* checkCors(draft);
  yield* checkDeliveries(draft, isWritten);
  yield* checkAsyncWrites(draft, isWritten);
  yield* checkVerify(draft, isWritten);
  yield* checkClientAuth(draft, isWritten);
  yield* checkPractice(draft);
  yield* checkState(draft.state, isWritten);
  yield* checkQuotaTopology(draft, isWritten);
  yield* checkClientQuotas(draft, isWritten);
}

function* checkAddresses({ listen, admin, telemetry }: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  if (admin !== undefined && admin !== false && admin.token === undefined && !isLoopback(admin.listen)) {
    const path = isWritten(['admin', 'listen']) ? ['admin', 'listen'] : ['admin'];
    yield mistakeAt(path, 'an address that other machines can reach needs a token: {listen, token}');
  }
  if (admin !== undefined && admin !== false && admin.permissions !== undefined && admin.listen.kind !== 'unix') {
    yield mistakeAt(['admin', 'permissions'], NOT_A_UNIX_SOCKET);
  }
  const seen = new Map<string, string>();
  const addresses = { listen: listen?.address, admin: admin === false ? undefined : admin?.listen, telemetry };
  for (const [key, address] of Object.entries(addresses)) {
    if (address === undefined || (address.kind === 'tcp' && address.port === 0)) continue;
    const text = formatListenAddress(address);
    const other = seen.get(text);
    if (other !== undefined) yield mistakeAt([key], `the same address as ${other}`);
    seen.set(text, key);
  }
}

const NOT_A_UNIX_SOCKET = 'only for a Unix socket: this is a TCP address';

function* checkListener({ listen, trustedProxies = [] }: PartialConfig): Generator<RuleFinding> {
  if (listen === undefined) return;
  const { address, tls, http2, permissions } = listen;
  if (http2 && tls === undefined) {
    yield mistakeAt(['listen', 'http2'], 'needs tls: {cert, key}, because HTTP/2 is agreed on in the TLS handshake');
  }
  if (address.kind === 'unix') return;
  if (permissions !== undefined) yield mistakeAt(['listen', 'permissions'], NOT_A_UNIX_SOCKET);
  const unix = trustedProxies.indexOf(UNIX_PEER);
  if (unix >= 0) yield warningAt(['clients', 'trustedProxies', unix], 'has no effect: listen is not a Unix socket');
}

function* checkRouteAndUpstreamCounts({ upstreamNames, routes }: PartialConfig): Generator<RuleFinding> {
  if (upstreamNames?.length === 0) yield mistakeAt(['upstreams'], 'at least one upstream is needed');
  if (routes?.length === 0 && (upstreamNames?.length ?? 0) > 1) {
    yield mistakeAt(['routes'], 'at least one route is needed where there is more than one upstream');
  }
}

function* checkNames(path: Path, names: readonly string[]): Generator<RuleFinding> {
  for (const name of names) {
    if (NAME_PATTERN.test(name)) continue;
    yield { ...mistakeAt([...path, name], NAME_EXPECTED), at: 'key' };
  }
}

function* checkUpstream(
  name: string,
  upstream: PartialUpstream,
  context: IdempotencyContext,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  const path = ['upstreams', name];
  const { tls, http2 } = upstream;
  yield* checkEndpoints(path, upstream, isWritten);
  const [origin] = upstreamOrigins(upstream);
  if (http2 === true && origin !== undefined && !origin.startsWith('https:')) {
    yield mistakeAt([...path, 'http2'], 'needs an https url, because HTTP/2 is agreed on in the TLS handshake');
  }
  if (isWritten([...path, 'tls']) && origin !== undefined && !origin.startsWith('https:')) {
    yield warningAt([...path, 'tls'], 'has no effect: the url is not https', 'key');
  }
  if (tls?.insecure) {
    yield warningAt(
      [...path, 'tls', 'insecure'],
      'the certificate is not verified: anybody can impersonate this upstream and read what is sent',
    );
  }
  yield* checkCertificatePair([...path, 'tls'], tls);
  yield* checkIdempotency(path, upstream, context, isWritten);
  yield* checkPacing(path, upstream, isWritten);
  yield* checkThrottle([...path, 'throttle'], upstream, isWritten);
}

/** Headers that identify clients and their classes. */
function identityHeaders({ clientKeys = [], classes = {} }: PartialConfig): string[] {
  return [
    ...clientKeys.flatMap((key) => (key.kind === 'header' ? [key.name] : [])),
    ...Object.values(classes).flatMap(({ match }) => Object.keys(match.header ?? {})),
  ];
}

/** The rates, the queue and the timeouts of an upstream agree with each other. */
export function* checkPacing(
  path: Path,
  upstream: Pick<PartialUpstream, 'rateLimit' | 'limits' | 'quotas' | 'queue' | 'timeout' | 'perTryTimeout'>,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  const { queue, timeout, perTryTimeout } = upstream;
  yield* checkRateBounds([...path, 'rateLimit'], upstream.rateLimit, isWritten);
  if (upstream.rateLimit?.learnFromLatency === true && upstream.rateLimit.scope !== 'upstream') {
    yield mistakeAt(
      [...path, 'rateLimit', 'learnFromLatency'],
      'only with scope upstream: a queue is that of all requests',
    );
  }
  yield* checkNestedLimits(path, upstream, isWritten);
  yield* checkQuotas(path, upstream);
  if (timeout === undefined) return;
  if (queue !== undefined && queue.maxWait >= timeout && isWritten([...path, 'queue', 'maxWait'])) {
    yield warningAt(
      [...path, 'queue', 'maxWait'],
      'not shorter than timeout: a request may spend its whole deadline in the queue',
    );
  }
  if (queue !== undefined && queue.maxWait < SHORT_WAIT && isWritten([...path, 'queue', 'maxWait'])) {
    if (isWritten([...path, 'provider'])) yield warningAt([...path, 'queue', 'maxWait'], SHORT_WAIT_FOR_SDKS);
  }
  if (perTryTimeout !== undefined && perTryTimeout > timeout && isWritten([...path, 'perTryTimeout'])) {
    yield warningAt([...path, 'perTryTimeout'], PER_TRY_TIMEOUT_TOO_LONG);
  }
}

const SHORT_WAIT: Millis = 5000;
const SHORT_WAIT_FOR_SDKS =
  'an SDK whose own retries are off reports each refusal as an error: 20s lets a burst wait for its turn';
const PER_TRY_TIMEOUT_TOO_LONG = 'longer than timeout, which ends the attempt first';

function* checkRoutes({ upstreamNames, upstreams, routes = [] }: PartialConfig): Generator<RuleFinding> {
  const seen = new Map<string, number>();
  for (const [i, route] of routes.entries()) {
    const path = ['routes', i];
    if (route.upstream !== undefined && upstreamNames?.includes(route.upstream) === false) {
      yield mistakeAt([...path, 'upstream'], 'no upstream has this name', suggest(route.upstream, upstreamNames));
    }
    for (const duplicate of findDuplicateRoutes(route, i, seen)) {
      yield mistakeAt(path, `the same host, path and method as routes[${duplicate}]`);
    }
    const timeout =
      route.timeout ?? (route.upstream === undefined ? undefined : upstreams.get(route.upstream)?.timeout);
    if (route.perTryTimeout !== undefined && timeout !== undefined && route.perTryTimeout > timeout) {
      yield warningAt([...path, 'perTryTimeout'], PER_TRY_TIMEOUT_TOO_LONG);
    }
  }
}

/** Earlier routes with the same host, path and a common method. @param seen the route of each such combination; added to */
function findDuplicateRoutes({ match }: PartialRoute, index: number, seen: Map<string, number>): Iterable<number> {
  const duplicates = new Set<number>();
  if (match === undefined) return duplicates;
  for (const method of new Set(match.methods ?? ['*'])) {
    const key = JSON.stringify([match.host, match.path, method]);
    const duplicate = seen.get(key);
    if (duplicate === undefined) seen.set(key, index);
    else duplicates.add(duplicate);
  }
  return duplicates;
}

function* checkPractice({ upstreams, practice }: PartialConfig): Generator<RuleFinding> {
  const practiceUpstreams = [...upstreams].filter(([, { url }]) => url === PRACTICE_URL);
  for (const [name] of practiceUpstreams) {
    if (!practice) {
      yield mistakeAt(['upstreams', name, 'url'], 'needs the section practice, which configures this upstream');
    }
  }
  if (practice && practiceUpstreams.length === 0) {
    yield warningAt(['practice'], 'has no effect: no upstream has url: practice', 'key');
  }
}
