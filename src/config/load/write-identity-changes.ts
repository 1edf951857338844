/** Finds changes of settings that make a repeat of an earlier write a new one. */
import { routeName } from '../schema/route-name.ts';
import type { Config } from '../schema/config-schema.ts';
import { formatClientKey } from '../schema/clients-schema.ts';
import { recognisesKeys } from '../schema/idempotency-schema.ts';
import { namingIn } from '../schema/key-scope.ts';
import type { Path } from './mistakes.ts';

/** Settings of `idempotency` that determine what identifies a write. */
const IDENTIFYING: ReadonlySet<unknown> = new Set(['header', 'jsonField', 'account', 'keyScope']);

/**
 * Whether a change at this path changes what identifies a write: `before` and `after` find another key, account, host,
 * path or upstream for the same request. A body beyond `replayLimit` is not searched for a key.
 */
export function changesWriteIdentity(path: Path, before: Config, after: Config): boolean {
  const [part, name, key, setting] = path;
  if (part === 'clients') return [before, after].some(namesOwners) && changesClientNames(path);
  if (part === 'routes' && key === 'auth') return [before, after].some(namesOwners);
  if (part === 'routes') return changesTarget(key) || (key === 'retry' && changesSearch(String(name), before, after));
  if (part === 'mode') return true; // observe mode reads no records of writes
  if (part !== 'upstreams') return false;
  if (key === 'mode') return true;
  if (key === 'idempotency') return setting === undefined || IDENTIFYING.has(setting);
  if (key === 'preserveHost') return true;
  if (key === 'accounts') return changesAccountNames(name, before, after);
  if (key === 'rateLimit') return [before, after].some(namesOwners) && keyNames(before) !== keyNames(after);
  const searchesBodies = [before, after].some((each) => readsJson(each, String(name)));
  return key === 'retry' && setting === 'replayLimit' && searchesBodies;
}

/** Whether other accounts are configured: a key that is not recorded may belong to one that gets no repeat of it. */
function changesAccountNames(upstream: unknown, before: Config, after: Config): boolean {
  const namesIn = ({ upstreams }: Config): string =>
    (upstreams[String(upstream)]?.accounts ?? [])
      .map(({ name }) => name)
      .toSorted()
      .join(' ');
  return namesIn(before) !== namesIn(after);
}

/** Whether the name of a client identifies its writes at an upstream, in place of its credential. */
function namesOwners({ upstreams }: Config): boolean {
  return Object.values(upstreams).some(
    ({ accounts, idempotency }) => accounts !== undefined && recognisesKeys(idempotency),
  );
}

/** The keys that are names: a header that is a credential at an upstream is none. */
function keyNames(config: Config): string {
  return namingIn(config).names.map(formatClientKey).join(' ');
}

/** Whether this setting decides what the name of a client is. */
function changesClientNames(path: Path): boolean {
  const [key, proof, setting] = path.slice(1);
  if (key === 'key') return true;
  if (key !== 'auth') return false;
  return setting === undefined || NAMING.has(`${String(proof)}.${String(setting)}`);
}

/** Settings of `clients.auth` that determine the name of a client. */
const NAMING: ReadonlySet<string> = new Set([
  'jwt.issuer',
  'jwt.nameClaim',
  'jwt.namePrefix',
  'certificate.name',
  'certificate.namePrefix',
]);

/** Whether this key of a route decides which upstream its requests go to, and with which path. */
function changesTarget(key: unknown): boolean {
  return key === 'upstream' || key === 'rewritePrefix';
}

/** Whether the `replayLimit` of a route changes, and its upstream has keys in bodies. */
function changesSearch(name: string, before: Config, after: Config): boolean {
  const [from, to] = [before, after].map(({ routes }) => routes.find((route) => routeName(route) === name));
  if (from === undefined || to === undefined || from.retry?.replayLimit === to.retry?.replayLimit) return false;
  return readsJson(before, from.upstream) || readsJson(after, to.upstream);
}

function readsJson({ upstreams }: Config, name: string): boolean {
  return upstreams[name]?.idempotency.jsonField !== undefined;
}
