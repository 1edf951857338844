import { isSafeMethod } from '../../core/http-semantics/methods.ts';
import type { PartialConfig, PartialRoute, PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import type { AsyncConfig } from '../schema/config-schema.ts';
import { ASYNC_SCHEDULE } from '../schema/delivery/async-schema.ts';
import { scheduleInEffect } from '../schema/delivery/schedule-in-effect.ts';
import { routeName } from '../schema/route-name.ts';
import { recognisesKeys } from '../schema/idempotency-schema.ts';
import { suggest } from '../values/suggest.ts';
import { formatTtl } from '../values/ttl.ts';
import { checkOtherKeys, checkSchedule, checkSurroundings } from './delivery-rules.ts';
import type { IsWritten, RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';

/** Routes that send writes later can store them, and recognise a repeat by its key as long as they are sent. */
export function* checkAsyncWrites(draft: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  const { routes = [], upstreams } = draft;
  for (const [i, route] of routes.entries()) {
    const path = ['routes', i, 'async'];
    if (!isWritten(path)) continue;
    yield* checkSurroundings(path, route, draft, isWritten);
    yield* checkOtherKeys(path, route);
    if (isWritten(['routes', i, 'deliver'])) {
      yield {
        ...mistakeAt(path, 'cannot be combined with deliver, which accepts every request of the route'),
        at: 'key',
      };
    }
    if (route.async === undefined) continue;
    const schedule = [...checkSchedule([...path, 'schedule'], route.async.schedule, ASYNC_SCHEDULE)];
    yield* schedule;
    if (schedule.some(({ level }) => level === 'mistake')) continue;
    yield* checkTimes(path, route.async, isWritten);
    yield* checkCallback([...path, 'callback'], route.async.callback, routes);
    const upstream = route.upstream === undefined ? undefined : upstreams.get(route.upstream);
    yield* checkKeys(path, route, route.async, upstream);
    if (draft.state.store === 'redis') yield* checkStoreLost(path, upstream);
  }
}

function* checkTimes(
  path: Path,
  { deduplicateFor, keepFor }: AsyncConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  if (deduplicateFor > keepFor.done) {
    const at = isWritten([...path, 'deduplicateFor']) ? ['deduplicateFor'] : ['keepFor', 'done'];
    yield warningAt(
      [...path, ...at],
      'deduplicateFor is longer than keepFor.done: a later repeat gets the Location of a write that is no longer stored',
    );
  }
}

/** A callback is a delivery, so that it is sent on a schedule until it is acknowledged. */
function* checkCallback(
  path: Path,
  callback: string | undefined,
  routes: readonly PartialRoute[],
): Generator<RuleFinding> {
  if (callback === undefined) return;
  const namesOf = (some: readonly PartialRoute[]): readonly string[] =>
    some.flatMap(({ match }) => (match === undefined ? [] : [routeName(match)]));
  const delivering = namesOf(routes.filter(({ deliver }) => deliver !== undefined));
  if (delivering.includes(callback)) return;
  const isRoute = namesOf(routes).includes(callback);
  const message = isRoute
    ? `the route ${callback} has no deliver: a callback is stored and sent by one that has it`
    : 'no route with deliver has this name';
  yield mistakeAt(path, message, isRoute ? undefined : suggest(callback, delivering));
}

function* checkKeys(
  path: Path,
  { match }: PartialRoute,
  { schedule, deduplicateFor }: AsyncConfig,
  upstream: PartialUpstream | undefined,
): Generator<RuleFinding> {
  if (match?.methods?.every((method) => isSafeMethod(method)) === true) {
    yield warningAt(path, 'has no effect: no method of the route is POST, PUT, PATCH or DELETE', 'key');
  }
  const { total } = scheduleInEffect(schedule, ASYNC_SCHEDULE);
  if (deduplicateFor < total) {
    const message = `must be at least as long as the schedule, which takes ${formatTtl(total)}`;
    yield mistakeAt([...path, 'deduplicateFor'], message);
  }
  const idempotency = upstream?.idempotency;
  if (idempotency === undefined) return;
  if (!recognisesKeys(idempotency)) {
    const message = 'needs an upstream that recognises idempotency keys: idempotency.header or jsonField';
    yield { ...mistakeAt(path, message), at: 'key' };
  }
  const ttl = shortestTtl(idempotency.ttl);
  if (ttl !== undefined && total > ttl) {
    yield mistakeAt(
      [...path, 'schedule'],
      `takes ${formatTtl(total)}, which is longer than the upstream remembers keys (idempotency.ttl: ${formatTtl(ttl)})`,
    );
  }
}

/**
 * A replica that is cut off from Redis would send a write that another replica has claimed since, and neither would know of the attempt of
 * the other: a write that has taken effect could be reported as failed.
 */
function* checkStoreLost(path: Path, upstream: PartialUpstream | undefined): Generator<RuleFinding> {
  if (upstream?.idempotency?.onStoreLost !== 'local') return;
  const message =
    'with state.store: redis, needs an upstream with idempotency.onStoreLost: refuse, so that no replica sends a write without Redis';
  yield { ...mistakeAt(path, message), at: 'key' };
}

/** Undefined if it is not known. */
function shortestTtl(ttl: NonNullable<PartialUpstream['idempotency']>['ttl']): number | undefined {
  if (ttl === undefined || typeof ttl === 'number') return ttl;
  return Math.min(...ttl.map((each) => each.ttl));
}
