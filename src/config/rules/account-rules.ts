/** Rules for the accounts of upstreams. */
import { isManagedHeader } from '../../core/http-semantics/managed-headers.ts';
import type { Path } from '../load/mistakes.ts';
import { recognisesKeys } from '../schema/idempotency-schema.ts';
import { type ClientNaming, distinguishesClients, keyScopeOf, mayLackName, namingOf } from '../schema/key-scope.ts';
import type { PartialConfig, PartialUpstream } from '../load/partial-config.ts';
import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';

type AccountsOfUpstream = Pick<PartialUpstream, 'accounts' | 'rateLimit' | 'idempotency'>;

/** Accounts agree with the limits and keys of their upstream, and with the routes to it. */
export function* checkAccounts(
  { upstreams, routes = [], check, state, clientKeys, auth }: PartialConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  // With another mistake there, it is not known which clients have names.
  const areClientsKnown = clientKeys !== undefined && isWritten(['clients', 'auth']) === (auth !== undefined);
  const naming = areClientsKnown ? namingOf({ key: clientKeys, auth }, upstreams.values()) : undefined;
  for (const [name, upstream] of upstreams) {
    const path = ['upstreams', name];
    yield* checkUpstreamAccounts(path, upstream, isWritten);
    yield* checkKeyScope([...path, 'idempotency', 'keyScope'], upstream, naming, isWritten);
  }
  if (check !== undefined && routes.length === 0) {
    for (const [name, { accounts }] of upstreams) {
      if (accounts === undefined) continue;
      yield mistakeAt(['upstreams', name, 'accounts'], SENT_BY_INGRESS, 'routes with check: never');
    }
  }
  // The hash of a client lasts as long as the secret: see process/client-hash-secret.ts.
  const isHashLasting = isWritten(['secret']) || (isWritten(['state', 'store']) && state.store !== 'memory');
  for (const [i, { upstream, check: answers, stickyAccount, auth: proof }] of routes.entries()) {
    const target = upstream === undefined ? undefined : upstreams.get(upstream);
    const accounts = target?.accounts;
    const path = ['routes', i];
    if (proof === 'none' && naming !== undefined && mayLackName(naming) && hasOwnKeys(target, naming)) {
      yield warningAt([...path, 'auth'], HAS_NO_NAMES, 'key');
    }
    if (accounts === undefined) {
      const isKnown =
        upstream !== undefined && upstreams.has(upstream) && !isWritten(['upstreams', upstream, 'accounts']);
      if (stickyAccount === true && isKnown) {
        yield warningAt([...path, 'stickyAccount'], 'has no effect: its upstream has no accounts', 'key');
      }
      continue;
    }
    if (stickyAccount === true && !isHashLasting) {
      yield warningAt([...path, 'stickyAccount'], CHANGES_WITH_PROCESS, 'key');
    }
    if (check !== undefined && answers !== 'never') {
      const isSet = isWritten([...path, 'check']);
      yield mistakeAt(isSet ? [...path, 'check'] : path, SENT_BY_INGRESS, 'check: never');
    }
  }
}

const CHANGES_WITH_PROCESS =
  'without secret, another replica, and this one after a restart, choose another account for a client';

const SENT_BY_INGRESS = 'an ingress that checks a request sends it itself, without the credentials of accounts';

function* checkUpstreamAccounts(
  path: Path,
  { accounts, rateLimit, idempotency }: AccountsOfUpstream,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  if (accounts === undefined) {
    if (isWritten([...path, 'accountQuarantine']) && !isWritten([...path, 'accounts'])) {
      yield warningAt([...path, 'accountQuarantine'], 'has no effect without accounts', 'key');
    }
    return;
  }
  if (rateLimit?.scope === 'client') {
    yield mistakeAt([...path, 'rateLimit', 'scope'], 'the upstream counts the requests of each account', 'credential');
  }
  if (rateLimit?.of === 'endpoint') {
    yield mistakeAt([...path, 'rateLimit', 'of'], 'the upstream counts the requests of each account', 'account');
  }
  if (rateLimit?.learnFromLatency === true) {
    yield mistakeAt(
      [...path, 'rateLimit', 'learnFromLatency'],
      'not with accounts: one queue at the upstream delays the requests of all of them',
    );
  }
  const keyHeader = idempotency === undefined || idempotency.header === false ? undefined : fold(idempotency.header);
  const seen = new Map<string, number>();
  for (const [i, { name, header }] of accounts.entries()) {
    const duplicate = seen.get(name);
    if (duplicate !== undefined) {
      yield mistakeAt([...path, 'accounts', i, 'name'], `accounts[${duplicate}] already has this name`);
    }
    seen.set(name, i);
    const at = [...path, 'accounts', i, 'header'];
    if (isManagedHeader(header) || FRAMING.has(fold(header))) {
      yield mistakeAt(at, 'is not a credential: Tidegate writes this header itself', 'Authorization');
    } else if (fold(header) === keyHeader) yield mistakeAt(at, 'is the header of idempotency keys', 'Authorization');
  }
}

/** The keys of two clients are separated where that is possible. @param path of `keyScope` */
function* checkKeyScope(
  path: Path,
  { accounts, idempotency }: AccountsOfUpstream,
  naming: ClientNaming | undefined,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  if (idempotency === undefined) return;
  const accountsPath = [...path.slice(0, -2), 'accounts'];
  if (!recognisesKeys(idempotency)) return; // a rule of keys reports this
  if (accounts === undefined) {
    const isKnown = !isWritten(accountsPath);
    if (isKnown && isWritten(path)) yield warningAt(path, 'has no effect without accounts', 'key');
    return;
  }
  if (naming === undefined) return;
  if (keyScopeOf({ accounts, idempotency }, naming) === 'shared') {
    if (!isWritten(path) && hasTokensOnly(naming)) yield warningAt(accountsPath, NAMES_DO_NOT_LAST, 'key');
    return;
  }
  if (!distinguishesClients(naming)) yield mistakeAt(path, NEEDS_NAMES, 'shared');
  if (idempotency.jsonField !== undefined) {
    yield { ...mistakeAt(path, KEY_IN_BODY), at: 'key' };
  }
}

function hasOwnKeys(upstream: AccountsOfUpstream | undefined, naming: ClientNaming): boolean {
  const { accounts, idempotency } = upstream ?? {};
  return idempotency !== undefined && keyScopeOf({ accounts, idempotency }, naming) === 'client';
}

/** Whether tokens or headers tell clients apart, and nothing names them. */
function hasTokensOnly(naming: ClientNaming): boolean {
  return !distinguishesClients(naming) && naming.keys.some(({ kind }) => kind === 'bearer' || kind === 'header');
}

const HAS_NO_NAMES =
  'clients on this route may have no name: two of these that send the same idempotency key share one write';

const NAMES_DO_NOT_LAST =
  'two clients that send the same idempotency key share one write: tokens, sessions and addresses change, so they do not name a client; set clients.auth, add a header or path to clients.key, or set idempotency.keyScope: shared if keys are unique across clients';

const NEEDS_NAMES = 'needs clients that have names: set clients.auth, or a header or path in clients.key';

const KEY_IN_BODY = 'must be shared with jsonField, because bodies are not changed; clients must use unique keys';

const FRAMING: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding']);

function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
