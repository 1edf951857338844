/** The differences between two configurations in effect, and which of them need a restart. */
import { isDeepStrictEqual } from 'node:util';
import { maskSecrets, encodeConfig } from './effective-config.ts';
import { isMapping, valueAt } from '../values/plain-object.ts';
import type { Path } from './mistakes.ts';
import { formatPath } from './mistakes.ts';
import { routeName } from '../schema/route-name.ts';
import type { Config, RouteConfig } from '../schema/config-schema.ts';
import { PRACTICE_URL } from '../values/upstream-url.ts';
import { changesWriteIdentity } from './write-identity-changes.ts';

export interface ConfigChange {
  readonly kind: 'added' | 'removed' | 'changed';
  /** Such as `upstreams.payments.timeout`; of a route, `routes["POST /v1"].timeout`. */
  readonly path: string;
  readonly steps: Path;
  /** As written in a file, secrets masked; undefined if there is no value. May be a whole route or upstream. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly needsRestart: boolean;
  /** See `changesWriteIdentity`. */
  readonly changesWriteIdentity: boolean;
}

/** A configuration, with the references to variables and files as they were written: as `loadConfig` returns them. */
export interface EffectiveConfiguration {
  readonly config: Config;
  readonly substituted: ReadonlyMap<string, string>;
}

/** Settings of sockets, processes and memory that are fixed at the start (docs/reload.md). */
export const RESTART_PATHS: readonly Path[] = [
  ['listen'],
  ['admin'],
  ['telemetry'],
  ['workers'],
  ['limits', 'replayMemory'],
  ['limits', 'headers'],
  ['limits', 'connections'],
  ['limits', 'requests'],
  ['limits', 'keptResponses'],
  ['limits', 'deliveries'],
  ['limits', 'deliveryBytes'],
  ['limits', 'overload'],
  ['drain'],
  ['secret'],
  ['log', 'format'],
  ['log', 'buffer'],
  ['clients', 'maxTracked'],
  ['state'],
  ['practice'],
  ['check', 'grpc'],
];

/** Returns the changes in the order of the schema; none when both configurations are equivalent. */
export function diffConfigs(before: EffectiveConfiguration, after: EffectiveConfiguration): ConfigChange[] {
  const changesGrpc = usesGrpc(before.config) !== usesGrpc(after.config);
  const startsPractice = !usesPractice(before.config) && usesPractice(after.config);
  return [...compare([], buildTree(before), buildTree(after))].map(({ steps, from, to }) => ({
    kind: from === undefined ? 'added' : to === undefined ? 'removed' : 'changed',
    path: formatPath(steps),
    steps,
    from: from === undefined ? undefined : formatValue(from.shown),
    to: to === undefined ? undefined : formatNewValue(from, to),
    needsRestart:
      RESTART_PATHS.some((path) => path.every((step, i) => steps[i] === step)) ||
      // The section as a whole is added or removed.
      (changesGrpc && steps.length === 1 && steps[0] === 'check') ||
      (startsPractice && steps[0] === 'upstreams' && isPracticeUrl(steps, to)),
    changesWriteIdentity: changesWriteIdentity(steps, before.config, after.config),
  }));
}

function usesGrpc({ check }: Config): boolean {
  return check?.grpc === true;
}

/** A value and its form for display, with secrets masked. */
interface ValueTree {
  readonly value: unknown;
  readonly shown: unknown;
}

interface Difference {
  readonly steps: Path;
  readonly from: ValueTree | undefined;
  readonly to: ValueTree | undefined;
}

/** Routes are keyed by name, so that a route inserted in the middle changes none of the others. */
function buildTree({ config, substituted }: EffectiveConfiguration): ValueTree {
  const value = encodeConfig(config);
  const shown = maskSecrets(value, [], substituted);
  return { value: keyRoutesByName(value, config.routes), shown: keyRoutesByName(shown, config.routes) };
}

function keyRoutesByName(tree: unknown, routes: readonly RouteConfig[]): unknown {
  const named = routes.map((route, i) => [routeName(route), valueAt(tree, ['routes', i])] as const);
  return isMapping(tree) ? { ...tree, routes: Object.fromEntries(named) } : tree;
}

function* compare(steps: Path, from: ValueTree | undefined, to: ValueTree | undefined): Generator<Difference> {
  if (isDeepStrictEqual(from?.value, to?.value)) return;
  const isRouteOrUpstream = steps.length === 2 && (steps[0] === 'routes' || steps[0] === 'upstreams');
  const isAddedOrRemoved = isRouteOrUpstream && (from === undefined || to === undefined);
  if (isAddedOrRemoved || !(isMapping(from?.value) && isMapping(to?.value))) {
    yield { steps, from, to };
    return;
  }
  for (const key of new Set([...Object.keys(from.value), ...Object.keys(to.value)])) {
    yield* compare([...steps, key], childOf(from, key), childOf(to, key));
  }
}

function childOf({ value, shown }: ValueTree, key: string): ValueTree | undefined {
  const inner = valueAt(value, [key]);
  return inner === undefined ? undefined : { value: inner, shown: valueAt(shown, [key]) };
}

/** A changed secret looks the same in both forms: says that its value differs. */
function formatNewValue(from: ValueTree | undefined, to: ValueTree): string {
  const text = formatValue(to.shown);
  return from !== undefined && formatValue(from.shown) === text ? `${text} (a different value)` : text;
}

function formatValue(shown: unknown): string {
  if (Array.isArray(shown)) return `[${shown.map(formatValue).join(', ')}]`;
  if (!isMapping(shown)) return String(shown);
  return `{${Object.entries(shown)
    .map(([key, value]) => `${key}: ${formatValue(value)}`)
    .join(', ')}}`;
}

function usesPractice({ upstreams }: Config): boolean {
  return Object.values(upstreams).some(({ url }) => url === PRACTICE_URL);
}

function isPracticeUrl(steps: Path, to: ValueTree | undefined): boolean {
  return steps.length === 2 ? valueAt(to?.value, ['url']) === PRACTICE_URL : to?.value === PRACTICE_URL;
}
