/** What no key can know alone: what has to fit together. */
import { isLoopback, writeAddress } from '../values/listen-address.ts';
import type { Checked, Written } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import { checkCheck } from './external-authorization-rules.ts';
import { checkCors } from './cors-rules.ts';
import { checkEndpoints } from './endpoint-rules.ts';
import type { Surroundings } from './idempotency-rules.ts';
import { checkIdempotency } from './idempotency-rules.ts';
import { checkLimits } from './nested-limit-rules.ts';
import { checkRates } from './rate-bound-rules.ts';
import { checkPair } from './certificate-pair-rule.ts';
import { checkPolls } from './poll-rules.ts';
import { checkRetries } from './retry-rules.ts';
import { checkState } from './state-rules.ts';
import { checkThrottle } from './throttle-rule-checks.ts';
import { UNIX_PEER } from '../schema/clients-schema.ts';
import type { Draft, DraftRoute, DraftUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { NAME } from '../schema/name-schemas.ts';
import { suggest } from '../values/suggest.ts';
import { originsOf } from '../schema/upstream-schema.ts';
import { PRACTICE_URL } from '../values/upstream-url.ts';

export function* crossCheck(draft: Draft, written: Written): Generator<Checked> {
  yield* checkAddresses(draft, written);
  yield* checkListener(draft);
  yield* checkNumbers(draft);
  yield* checkNames(['upstreams'], draft.upstreamNames ?? []);
  yield* checkNames(['clients', 'classes'], draft.classNames);
  yield* checkNames(['clients', 'names'], draft.clientNames);
  const isAlone = draft.state.store !== 'redis' && (draft.workers ?? 1) === 1;
  const surroundings = { identities: identitiesIn(draft), isAlone };
  for (const [name, upstream] of draft.upstreams) yield* checkUpstream(name, upstream, surroundings, written);
  yield* checkRoutes(draft);
  yield* checkCheck(draft, written);
  yield* checkRetries(draft);
  yield* checkPolls(draft);
  yield* checkCors(draft);
  yield* checkPractice(draft);
  yield* checkState(draft.state, written);
}

function* checkAddresses({ listen, admin, telemetry }: Draft, written: Written): Generator<Checked> {
  if (admin !== undefined && admin !== false && admin.token === undefined && !isLoopback(admin.listen)) {
    const path = written(['admin', 'listen']) ? ['admin', 'listen'] : ['admin'];
    yield mistake(path, 'an address that other machines can reach needs a token: {listen, token}');
  }
  if (admin !== undefined && admin !== false && admin.permissions !== undefined && admin.listen.kind !== 'unix') {
    yield mistake(['admin', 'permissions'], NO_FILE);
  }
  const seen = new Map<string, string>();
  const addresses = { listen: listen?.address, admin: admin === false ? undefined : admin?.listen, telemetry };
  for (const [key, address] of Object.entries(addresses)) {
    if (address === undefined || (address.kind === 'tcp' && address.port === 0)) continue;
    const text = writeAddress(address);
    const other = seen.get(text);
    if (other !== undefined) yield mistake([key], `the same address as ${other}`);
    seen.set(text, key);
  }
}

const NO_FILE = 'only the file of a Unix socket has them';

function* checkListener({ listen, trustedProxies = [] }: Draft): Generator<Checked> {
  if (listen === undefined) return;
  const { address, tls, http2, permissions } = listen;
  if (http2 && tls === undefined) {
    yield mistake(['listen', 'http2'], 'needs tls: {cert, key}, because HTTP/2 is agreed on in the TLS handshake');
  }
  if (address.kind === 'unix') return;
  if (permissions !== undefined) yield mistake(['listen', 'permissions'], NO_FILE);
  const unix = trustedProxies.indexOf(UNIX_PEER);
  if (unix >= 0) yield warning(['clients', 'trustedProxies', unix], 'has no effect: listen is no Unix socket');
}

function* checkNumbers({ upstreamNames, routes }: Draft): Generator<Checked> {
  if (upstreamNames?.length === 0) yield mistake(['upstreams'], 'at least one upstream is needed');
  if (routes?.length === 0 && (upstreamNames?.length ?? 0) > 1) {
    yield mistake(['routes'], 'at least one route is needed where there is more than one upstream');
  }
}

function* checkNames(path: Path, names: readonly string[]): Generator<Checked> {
  for (const name of names) {
    if (NAME.test(name)) continue;
    const message = 'a name starts with a letter, and has at most 64 letters, digits, ".", "_" and "-"';
    yield { ...mistake([...path, name], message), at: 'key' };
  }
}

function* checkUpstream(
  name: string,
  upstream: DraftUpstream,
  surroundings: Surroundings,
  written: Written,
): Generator<Checked> {
  const path = ['upstreams', name];
  const { tls, http2 } = upstream;
  yield* checkEndpoints(path, upstream, written);
  const [origin] = originsOf(upstream);
  if (http2 === true && origin !== undefined && !origin.startsWith('https:')) {
    yield mistake([...path, 'http2'], 'needs an https url, because HTTP/2 is agreed on in the TLS handshake');
  }
  if (written([...path, 'tls']) && origin !== undefined && !origin.startsWith('https:')) {
    yield warning([...path, 'tls'], 'has no effect: the url is not https', 'key');
  }
  if (tls?.insecure) {
    yield warning([...path, 'tls', 'insecure'], 'anybody can play this upstream and read what is sent');
  }
  yield* checkPair([...path, 'tls'], tls);
  yield* checkIdempotency(path, upstream, surroundings, written);
  yield* checkPacing(path, upstream, written);
  yield* checkThrottle([...path, 'throttle'], upstream, written);
}

/** Headers that clients and their classes are told apart by. */
function identitiesIn({ clientKeys = [], classes = {} }: Draft): string[] {
  return [
    ...clientKeys.flatMap((key) => (key.kind === 'header' ? [key.name] : [])),
    ...Object.values(classes).flatMap(({ match }) => Object.keys(match.header ?? {})),
  ];
}

/** The rates, the queue and the times of an upstream fit together. */
export function* checkPacing(
  path: Path,
  upstream: Pick<DraftUpstream, 'rateLimit' | 'limits' | 'queue' | 'timeout' | 'perTryTimeout'>,
  written: Written,
): Generator<Checked> {
  const { queue, timeout, perTryTimeout } = upstream;
  yield* checkRates([...path, 'rateLimit'], upstream.rateLimit, written);
  yield* checkLimits(path, upstream, written);
  if (timeout === undefined) return;
  if (queue !== undefined && queue.maxWait >= timeout && written([...path, 'queue', 'maxWait'])) {
    yield warning([...path, 'queue', 'maxWait'], 'not shorter than timeout: a request may wait until no time is left');
  }
  if (perTryTimeout !== undefined && perTryTimeout > timeout && written([...path, 'perTryTimeout'])) {
    yield warning([...path, 'perTryTimeout'], LATE_TRY);
  }
}

const LATE_TRY = 'longer than timeout, which ends the attempt first';

function* checkRoutes({ upstreamNames, upstreams, routes = [] }: Draft): Generator<Checked> {
  const seen = new Map<string, number>();
  for (const [i, route] of routes.entries()) {
    const path = ['routes', i];
    if (route.upstream !== undefined && upstreamNames?.includes(route.upstream) === false) {
      yield mistake([...path, 'upstream'], 'no upstream has this name', suggest(route.upstream, upstreamNames));
    }
    for (const twin of findTwins(route, i, seen)) {
      yield mistake(path, `the same host, path and method as routes[${twin}]`);
    }
    const timeout =
      route.timeout ?? (route.upstream === undefined ? undefined : upstreams.get(route.upstream)?.timeout);
    if (route.perTryTimeout !== undefined && timeout !== undefined && route.perTryTimeout > timeout) {
      yield warning([...path, 'perTryTimeout'], LATE_TRY);
    }
  }
}

/** Routes before this one that take some of the same requests. @param seen what routes take; added to */
function findTwins({ takes }: DraftRoute, index: number, seen: Map<string, number>): Iterable<number> {
  const twins = new Set<number>();
  if (takes === undefined) return twins;
  for (const method of new Set(takes.methods ?? ['*'])) {
    const key = JSON.stringify([takes.host, takes.path, method]);
    const twin = seen.get(key);
    if (twin === undefined) seen.set(key, index);
    else twins.add(twin);
  }
  return twins;
}

function* checkPractice({ upstreams, practice }: Draft): Generator<Checked> {
  const playing = [...upstreams].filter(([, { url }]) => url === PRACTICE_URL);
  for (const [name] of playing) {
    if (!practice) yield mistake(['upstreams', name, 'url'], 'needs the section practice, which says how to play it');
  }
  if (practice && playing.length === 0) {
    yield warning(['practice'], 'has no effect: no upstream has url: practice', 'key');
  }
}
