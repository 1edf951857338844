/** Rules for the accounts of upstreams. */
import { isManagedHeader } from '../../core/http-semantics/managed-headers.ts';
import type { Path } from '../load/mistakes.ts';
import type { PartialConfig, PartialUpstream } from '../load/partial-config.ts';
import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';

type AccountsOfUpstream = Pick<PartialUpstream, 'accounts' | 'rateLimit' | 'idempotency'>;

/** Accounts agree with the limits and keys of their upstream, and with the routes to it. */
export function* checkAccounts(
  { upstreams, routes = [], check, state }: PartialConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  for (const [name, upstream] of upstreams) yield* checkUpstreamAccounts(['upstreams', name], upstream, isWritten);
  if (check !== undefined && routes.length === 0) {
    for (const [name, { accounts }] of upstreams) {
      if (accounts === undefined) continue;
      yield mistakeAt(['upstreams', name, 'accounts'], SENT_BY_INGRESS, 'routes with check: never');
    }
  }
  // The hash of a client lasts as long as the secret: see process/client-hash-secret.ts.
  const isHashLasting = isWritten(['secret']) || (isWritten(['state', 'store']) && state.store !== 'memory');
  for (const [i, { upstream, check: answers, stickyAccount }] of routes.entries()) {
    const accounts = upstream === undefined ? undefined : upstreams.get(upstream)?.accounts;
    const path = ['routes', i];
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

const FRAMING: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding']);

function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
