import type { DeliverySchedule } from '../../core/delivery/delivery-schedule.ts';
import type { Millis } from '../../core/scalars.ts';
import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import { checkBackOff } from './retry-rules.ts';
import type { PartialConfig, PartialRoute } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import type { DeliveryConfig } from '../schema/config-schema.ts';
import { DELIVERY_SCHEDULE, type ScheduleDefaults } from '../schema/delivery/delivery-schedule-schema.ts';
import { MANY_DELIVERY_ATTEMPTS, scheduleInEffect } from '../schema/delivery/schedule-in-effect.ts';
import { mergeBackOff } from '../schema/retry-overrides.ts';
import { formatTtl } from '../values/ttl.ts';

/** Delivering routes can store what they accept, send it more than once, and do nothing else with it. */
export function* checkDeliveries(draft: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  const { routes = [] } = draft;
  for (const [i, route] of routes.entries()) {
    const path = ['routes', i, 'deliver'];
    if (!isWritten(path)) continue;
    yield* checkSurroundings(path, route, draft, isWritten);
    yield* checkOtherKeys(path, route);
    if (route.deliver === undefined) continue;
    const findings = [...checkSchedule([...path, 'schedule'], route.deliver.schedule)];
    yield* findings;
    if (!findings.some(({ level }) => level === 'mistake')) {
      yield* checkAge([...path, 'schedule'], route.deliver.schedule, draft.deliveryAge);
    }
    yield* checkResponse([...path, 'respond'], route.deliver.respond, isWritten);
    const { secrets = [] } = route.deliver.sign ?? {};
    if (new Set(secrets).size < secrets.length) {
      yield mistakeAt([...path, 'sign', 'secrets'], 'the same secret twice');
    }
    if (route.deliver.eventId === undefined && isWritten([...path, 'deduplicateFor'])) {
      yield warningAt(
        [...path, 'deduplicateFor'],
        'has no effect without eventId, which says where a request has its id',
        'key',
      );
    }
  }
}

/** What the rest of the configuration must be. */
export function* checkSurroundings(
  path: Path,
  { upstream }: PartialRoute,
  { state, mode, upstreams }: PartialConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  const atKey = (message: string): RuleFinding => ({ ...mistakeAt(path, message), at: 'key' });
  if (state.store !== 'sqlite' && state.store !== 'redis') {
    yield atKey(
      'needs state: {store: sqlite, file: …} or {store: redis, url: …}, where a delivery is stored before it is answered',
    );
  }
  const ownMode = upstream === undefined ? undefined : upstreams.get(upstream)?.mode;
  if ((ownMode ?? mode) === 'observe') {
    yield atKey('cannot be combined with mode: observe, which forwards every request at once and stores none');
  }
  if (!isWritten(['secret'])) yield atKey('needs secret, at the top level: stored requests are encrypted with it');
}

/** Keys of the route for clients that wait for the response of the upstream. @param path of the key that answers them before */
export function* checkOtherKeys(path: Path, { poll, cors, check }: PartialRoute): Generator<RuleFinding> {
  const own = String(path.at(-1));
  const other = (key: string, message: string): RuleFinding => ({
    ...mistakeAt([...path.slice(0, -1), key], message),
    at: 'key',
  });
  if (poll !== undefined) {
    yield other(
      'poll',
      `cannot be combined with ${own}: the client gets its response before the upstream has the request`,
    );
  }
  if (cors !== undefined && cors !== 'pass-through') {
    yield other('cors', `cannot be combined with ${own}, which accepts requests of servers, not of pages`);
  }
  if (check === 'only') {
    yield other('check', `cannot be combined with ${own}: a check is answered and not stored`);
  }
}

/** @param defaults of the options that are left out */
export function* checkSchedule(
  path: Path,
  schedule: DeliveryConfig['schedule'],
  defaults: ScheduleDefaults = DELIVERY_SCHEDULE,
): Generator<RuleFinding> {
  if (typeof schedule === 'string') return;
  const { total, delays, ...written } = schedule;
  if (delays !== undefined) {
    for (const key of Object.keys({ ...written, ...(total === undefined ? {} : { total }) })) {
      const message = 'cannot be combined with delays, which are the whole schedule: it ends with the last of them';
      yield { ...mistakeAt([...path, key], message), at: 'key' };
    }
    return;
  }
  const backOff = mergeBackOff(defaults.backOff, written);
  const problems = [...checkBackOff(path, backOff, written)];
  yield* problems;
  if (problems.some(({ level }) => level === 'mistake')) return;
  const inEffect = scheduleInEffect(schedule, defaults);
  const first = inEffect.band(0);
  if (first !== undefined && first.max > inEffect.total) {
    const at = total === undefined ? path : [...path, 'total'];
    yield mistakeAt(
      at,
      `may make no second attempt: the first delay can be ${formatTtl(Math.ceil(first.max))}, which is longer than total`,
    );
  } else if (typicalTime(inEffect, MANY_DELIVERY_ATTEMPTS) < inEffect.total) {
    yield warningAt(
      path,
      `more than ${MANY_DELIVERY_ATTEMPTS} attempts for each delivery before total is over: choose longer delays`,
    );
  }
}

/** A schedule is over before a delivery expires. */
function* checkAge(
  path: Path,
  schedule: DeliveryConfig['schedule'],
  deliveryAge: Millis | undefined,
): Generator<RuleFinding> {
  if (deliveryAge === undefined || scheduleInEffect(schedule).total <= deliveryAge) return;
  yield warningAt(
    path,
    `a delivery is dead after limits.deliveryAge (${formatTtl(deliveryAge)}), before its schedule is over`,
  );
}

/** How long after the first attempt the one after `retries` others begins, by the medians of the delays; `Infinity` if there is none. */
function typicalTime(schedule: DeliverySchedule, retries: number): Millis {
  let time = 0;
  for (let n = 0; n < retries && time <= schedule.total; n += 1) time += schedule.delay(n, () => 0.5) ?? Infinity;
  return time;
}

/** Statuses whose responses have no content: RFC 9110 §15.3.5 and §15.3.6. */
const WITHOUT_CONTENT: ReadonlySet<number> = new Set([204, 205]);

function* checkResponse(
  path: Path,
  { status, body }: DeliveryConfig['respond'],
  isWritten: IsWritten,
): Generator<RuleFinding> {
  if (body !== undefined && WITHOUT_CONTENT.has(status)) {
    yield mistakeAt([...path, 'body'], `a response with status ${status} has no body: use status 200`);
  }
  if (body === undefined && isWritten([...path, 'contentType'])) {
    yield warningAt([...path, 'contentType'], 'has no effect without body', 'key');
  }
}
