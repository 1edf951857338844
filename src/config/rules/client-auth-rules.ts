import { parseJwks } from '../auth/jwks-text.ts';
import { parseKeyFile } from '../auth/key-file.ts';
import type { PartialConfig, PartialUpstream } from '../load/partial-config.ts';
import type { ConfigEnvironment } from '../load/substitute.ts';
import { describeFileError } from '../load/substitute.ts';
import type { ClientAuthConfig } from '../schema/config-schema.ts';
import { isJwksUrl } from '../schema/auth/client-auth-schema.ts';
import { routeName } from '../schema/route-name.ts';
import { isLoopback } from '../values/listen-address.ts';
import { suggest } from '../values/suggest.ts';
import type { IsWritten, RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';

/** Clients can prove their names, and nothing lets one of them pass for another. */
export function* checkClientAuth(draft: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  if (draft.listen?.tls?.clientCa !== undefined && !isWritten(['clients', 'auth', 'certificate'])) {
    yield warningAt(['listen', 'tls', 'clientCa'], 'has no effect without clients.auth.certificate', 'key');
  }
  if (!isWritten(['clients', 'auth'])) {
    yield* checkSettingsWithoutAuth(draft, isWritten);
    return;
  }
  yield* checkAllow(draft);
  yield* checkRoutes(draft);
  if (draft.auth === undefined) return;
  yield* checkHeaders(draft.auth, isWritten);
  if (draft.auth.certificate !== undefined) yield* checkClientCertificates(draft, isWritten);
  if (!draft.auth.forward) yield* checkWithheldHeaders(draft.auth, draft.upstreams);
}

function* checkSettingsWithoutAuth(draft: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  for (const name of Object.keys(draft.classes ?? {})) {
    const path = ['clients', 'classes', name, 'allow'];
    if (isWritten(path)) yield mistakeAt(path, 'needs clients.auth: without it, any client can claim any name');
  }
  for (const i of (draft.routes ?? []).keys()) {
    const path = ['routes', i, 'auth'];
    if (isWritten(path)) yield warningAt(path, 'has no effect without clients.auth', 'key');
  }
  yield* checkHeldCredentials(draft);
}

/** Whoever reaches the listener uses the credentials that Tidegate holds. */
function* checkHeldCredentials({ listen, upstreams, routes = [] }: PartialConfig): Generator<RuleFinding> {
  if (listen === undefined || isLoopback(listen.address)) return;
  const open = routes.filter(({ verify }) => verify === undefined).flatMap(({ upstream }) => upstream ?? []);
  const reachable = new Set(open.flatMap((name) => [name, upstreams.get(name)?.fallback ?? name]));
  for (const [name, { tls, accounts }] of upstreams) {
    if (!reachable.has(name)) continue;
    if (tls?.cert !== undefined) yield warningAt(['upstreams', name, 'tls', 'cert'], CREDENTIAL_FOR_ALL);
    if (accounts !== undefined) yield warningAt(['upstreams', name, 'accounts'], CREDENTIAL_FOR_ALL, 'key');
  }
}

const CREDENTIAL_FOR_ALL =
  'Tidegate authenticates to this upstream, and other machines can reach listen: set clients.auth, or whoever connects uses this credential';

/** A class decides what its clients may do, so a client must not choose its class by a header. */
function* checkAllow({ classes = {}, routes }: PartialConfig): Generator<RuleFinding> {
  const entries = Object.entries(classes);
  if (!entries.some(([, { allow }]) => allow !== undefined)) return;
  const names = (routes ?? []).flatMap(({ match }) => (match === undefined ? [] : [routeName(match)]));
  for (const [name, { match, allow }] of entries) {
    const path = ['clients', 'classes', name];
    if (match.header !== undefined) yield mistakeAt([...path, 'match', 'header'], CHOSEN_BY_CLIENT);
    for (const [i, route] of (allow?.routes ?? []).entries()) {
      if (names.includes(route) || routes === undefined) continue;
      yield mistakeAt([...path, 'allow', 'routes', i], 'no route has this name', suggest(route, names));
    }
  }
}

const CHOSEN_BY_CLIENT =
  'a client could leave a class with allow by sending or omitting this header: match by key, the name of the client';

function* checkRoutes({ routes = [] }: PartialConfig): Generator<RuleFinding> {
  for (const [i, { auth, deliver, async }] of routes.entries()) {
    if (auth === 'none') continue;
    if (deliver !== undefined) yield mistakeAt(['routes', i, 'deliver'], sentLater('deliver'));
    if (async !== undefined) yield mistakeAt(['routes', i, 'async'], sentLater('async'));
  }
}

function sentLater(setting: string): string {
  return `${setting} does not support clients.auth: what is sent later has no client any more; add auth: none to this route, or remove ${setting}`;
}

function* checkClientCertificates({ listen }: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  const path = ['clients', 'auth', 'certificate'];
  if (listen !== undefined && listen.tls?.clientCa === undefined) {
    yield mistakeAt(path, 'needs listen.tls.clientCa: the CA certificates that issue those of clients');
  }
  if (isWritten(['check'])) yield mistakeAt(path, CHECKS_HAVE_NO_CERTIFICATE);
}

const CHECKS_HAVE_NO_CERTIFICATE =
  'not with check: the connection of a check is that of the ingress, so its certificate is not that of the client';

function* checkHeaders({ apiKeys, jwt }: ClientAuthConfig, isWritten: IsWritten): Generator<RuleFinding> {
  if (jwt === undefined) return;
  if (apiKeys !== undefined && isSame(apiKeys.header, jwt.header) && !isSame(jwt.header, 'authorization')) {
    yield mistakeAt(['clients', 'auth', 'jwt', 'header'], 'the header of apiKeys: only Authorization can have both');
  }
  if (isJwksUrl(jwt.jwks)) return;
  for (const key of ['ca', 'tokenFile']) {
    const path = ['clients', 'auth', 'jwt', key];
    if (isWritten(path)) yield warningAt(path, 'has no effect: jwks is a file', 'key');
  }
}

/** An upstream does not see these headers, so nothing of it can depend on them. */
function* checkWithheldHeaders(
  { apiKeys, jwt }: ClientAuthConfig,
  upstreams: PartialConfig['upstreams'],
): Generator<RuleFinding> {
  const withheld = [apiKeys?.header, jwt?.header].flatMap((header) => header ?? []);
  for (const [name, upstream] of upstreams) {
    for (const path of scopesByCredential(upstream)) {
      const header = upstream.rateLimit?.credentialHeader ?? '';
      if (withheld.some((each) => isSame(each, header))) {
        yield mistakeAt(['upstreams', name, ...path], `${header} is removed by clients.auth: ${USE_CLIENT}`);
      }
    }
  }
}

const USE_CLIENT =
  'use scope client, for a limit of each authenticated client, or read the credential from another header';

function scopesByCredential({ rateLimit, limits = [] }: PartialUpstream): (string | number)[][] {
  return [
    ...(rateLimit?.scope === 'credential' ? [['rateLimit', 'scope']] : []),
    ...limits.flatMap(({ scope }, i) => (scope === 'credential' ? [['limits', i, 'scope']] : [])),
  ];
}

/** The files that authentication reads exist, and can be used. */
export function* checkAuthFiles(
  { auth }: PartialConfig,
  readFile: ConfigEnvironment['readFile'],
): Generator<RuleFinding> {
  const { apiKeys, jwt } = auth ?? {};
  if (apiKeys !== undefined) {
    const problem = findFileProblem(() => parseKeyFile(readFile(apiKeys.file)));
    if (problem !== undefined) yield mistakeAt(['clients', 'auth', 'apiKeys', 'file'], problem);
  }
  if (jwt === undefined) return;
  if (!isJwksUrl(jwt.jwks)) {
    const problem = findFileProblem(() => parseJwks(readFile(jwt.jwks)));
    if (problem !== undefined) yield mistakeAt(['clients', 'auth', 'jwt', 'jwks'], problem);
  }
}

function findFileProblem(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof Error && !('code' in error)) return error.message;
    return `cannot be read: ${describeFileError(error)}`;
  }
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
