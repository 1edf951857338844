/** What differs between two configurations in effect, and what of that a running process cannot take over. */
import { isDeepStrictEqual } from 'node:util';
import { conceal, encodeEffective } from './effective-config.ts';
import { isMapping, valueAt } from './schema-issues.ts';
import type { Path } from './mistakes.ts';
import { formatPath } from './mistakes.ts';
import { nameOf } from '../schema/route-name.ts';
import type { Config, RouteConfig } from '../schema/config-schema.ts';
import { PRACTICE_URL } from '../values/upstream-url.ts';

export interface Change {
  readonly kind: 'added' | 'removed' | 'changed';
  /** `upstreams.payments.timeout`; of a route `routes["POST /v1"].timeout`. */
  readonly path: string;
  readonly steps: Path;
  /** As people write it, secrets masked; undefined where there is nothing. Of a whole route or upstream too. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly needsRestart: boolean;
}

/** A configuration, and how what came from variables and files was written: as `loadConfig` returns them. */
export interface Effective {
  readonly config: Config;
  readonly substituted: ReadonlyMap<string, string>;
}

/** What sockets, processes and memory are made of at a start (docs/reload.md). */
const RESTART: readonly Path[] = [
  ['listen'],
  ['admin'],
  ['telemetry'],
  ['workers'],
  ['limits', 'replayMemory'],
  ['limits', 'headers'],
  ['limits', 'connections'],
  ['limits', 'requests'],
  ['limits', 'overload'],
  ['drain'],
  ['secret'],
  ['log', 'buffer'],
  ['clients', 'maxTracked'],
  ['state'],
  ['practice'],
];

/** In the order of the schema; empty when both come to the same. */
export function compareConfigs(before: Effective, after: Effective): Change[] {
  const startsPractice = !playsPractice(before.config) && playsPractice(after.config);
  return [...compare([], treeOf(before), treeOf(after))].map(({ steps, from, to }) => ({
    kind: from === undefined ? 'added' : to === undefined ? 'removed' : 'changed',
    path: formatPath(steps),
    steps,
    from: from === undefined ? undefined : write(from.shown),
    to: to === undefined ? undefined : tellApart(from, to),
    needsRestart:
      RESTART.some((path) => path.every((step, i) => steps[i] === step)) ||
      (startsPractice && steps[0] === 'upstreams' && isPractice(steps, to)),
  }));
}

/** What stands somewhere, and what may be told of it. */
interface Tree {
  readonly value: unknown;
  readonly shown: unknown;
}

interface Difference {
  readonly steps: Path;
  readonly from: Tree | undefined;
  readonly to: Tree | undefined;
}

/** Routes go by their names: one more in the middle changes none of the others. */
function treeOf({ config, substituted }: Effective): Tree {
  const value = encodeEffective(config);
  const shown = conceal(value, [], substituted);
  return { value: nameRoutes(value, config.routes), shown: nameRoutes(shown, config.routes) };
}

function nameRoutes(tree: unknown, routes: readonly RouteConfig[]): unknown {
  const named = routes.map((route, i) => [nameOf(route), valueAt(tree, ['routes', i])] as const);
  return isMapping(tree) ? { ...tree, routes: Object.fromEntries(named) } : tree;
}

function* compare(steps: Path, from: Tree | undefined, to: Tree | undefined): Generator<Difference> {
  if (isDeepStrictEqual(from?.value, to?.value)) return;
  const isWhole = steps.length === 2 && (steps[0] === 'routes' || steps[0] === 'upstreams');
  const isOne = isWhole && (from === undefined || to === undefined);
  if (isOne || !(isMapping(from?.value) && isMapping(to?.value))) {
    yield { steps, from, to };
    return;
  }
  for (const key of new Set([...Object.keys(from.value), ...Object.keys(to.value)])) {
    yield* compare([...steps, key], within(from, key), within(to, key));
  }
}

function within({ value, shown }: Tree, key: string): Tree | undefined {
  const inner = valueAt(value, [key]);
  return inner === undefined ? undefined : { value: inner, shown: valueAt(shown, [key]) };
}

/** Of a secret that has changed nothing else can be told. */
function tellApart(from: Tree | undefined, to: Tree): string {
  const told = write(to.shown);
  return from !== undefined && write(from.shown) === told ? `${told} (another value)` : told;
}

function write(shown: unknown): string {
  if (Array.isArray(shown)) return `[${shown.map(write).join(', ')}]`;
  if (!isMapping(shown)) return String(shown);
  return `{${Object.entries(shown)
    .map(([key, value]) => `${key}: ${write(value)}`)
    .join(', ')}}`;
}

function playsPractice({ upstreams }: Config): boolean {
  return Object.values(upstreams).some(({ url }) => url === PRACTICE_URL);
}

function isPractice(steps: Path, to: Tree | undefined): boolean {
  return steps.length === 2 ? valueAt(to?.value, ['url']) === PRACTICE_URL : to?.value === PRACTICE_URL;
}
