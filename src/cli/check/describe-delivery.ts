import { toList } from '../../config/values/one-or-many.ts';
import type { AsyncConfig, DeliveryConfig } from '../../config/schema/config-schema.ts';
import { ASYNC_SCHEDULE } from '../../config/schema/delivery/async-schema.ts';
import { MANY_DELIVERY_ATTEMPTS, scheduleInEffect } from '../../config/schema/delivery/schedule-in-effect.ts';
import { formatTtl } from '../../config/values/ttl.ts';
import type { DeliverySchedule } from '../../core/delivery/delivery-schedule.ts';
import type { Millis } from '../../core/scalars.ts';
import { sum } from './route-worst-case.ts';

/** More delays than this are summarised. */
const MAX_DELAYS_SHOWN = 8;

/** What a delivering route does with a request: its response, its attempts and its end. One line each. */
export function describeDelivery({
  schedule: written,
  respond,
  acknowledgedBy,
  sign,
  keepFor,
}: DeliveryConfig): string[] {
  const schedule = scheduleInEffect(written);
  const delays = expectedDelays(schedule);
  const name = typeof written === 'string' ? ` (${written})` : '';
  return [
    `response: ${respond.status} once the request is stored`,
    `delivery: at once, then ${describeDelays(schedule, delays)} after each attempt that is not acknowledged${name}`,
    `  ${describeEnd(schedule, delays)}`,
    `  acknowledged by ${describeAcknowledgement(acknowledgedBy)}`,
    ...(sign === undefined ? [] : [`  ${describeSignature(sign)}`]),
    `  kept for ${formatTtl(keepFor.delivered)} once delivered, and for ${formatTtl(keepFor.dead)} if no attempt is acknowledged`,
  ];
}

/** What a route does with a write that its client wants to be sent later. One line each. */
export function describeAsyncWrites({ schedule: written, callback, keepFor }: AsyncConfig): string[] {
  const schedule = scheduleInEffect(written, ASYNC_SCHEDULE);
  const delays = expectedDelays(schedule);
  return [
    `with Prefer: respond-async: 202 once the write is stored; sent at once, then ${describeDelays(schedule, delays)} after each attempt that leaves its outcome open`,
    `  ${describeEnd(schedule, delays)}`,
    ...(callback === undefined ? [] : [`  with Tidegate-Callback: its state is sent by ${callback} once it has ended`]),
    `  kept for ${formatTtl(keepFor.done)} once done, and for ${formatTtl(keepFor.failed)} if it has failed, or its outcome is unknown`,
  ];
}

function describeDelays({ endsAfterTotal }: DeliverySchedule, delays: readonly Millis[]): string {
  const shown = delays.slice(0, MAX_DELAYS_SHOWN).map(formatRough);
  const rest = delays.length > MAX_DELAYS_SHOWN ? ' …' : '';
  return `${endsAfterTotal ? 'on average ' : ''}${shown.join(', ')}${rest}`;
}

function describeEnd({ total, endsAfterTotal }: DeliverySchedule, delays: readonly Millis[]): string {
  const attempts = delays.length + 1;
  if (endsAfterTotal && attempts > MANY_DELIVERY_ATTEMPTS) {
    return `more than ${MANY_DELIVERY_ATTEMPTS} attempts; the last one at most ${formatRough(total)} after the first`;
  }
  const lastAt = formatRough(sum(delays));
  return endsAfterTotal
    ? `about ${attempts} attempts; the last one about ${lastAt} after the first, at most ${formatRough(total)}`
    : `${attempts} attempts; the last one ${lastAt} after the first, and the time that the others took`;
}

/** Delays at their means, until the next attempt would begin after the total, or there are too many to count. */
function expectedDelays(schedule: DeliverySchedule): Millis[] {
  const delays: Millis[] = [];
  let at = 0;
  for (;;) {
    const delay = schedule.band(delays.length)?.mean;
    if (delay === undefined) break;
    if (schedule.endsAfterTotal && (at + delay > schedule.total || delays.length >= MANY_DELIVERY_ATTEMPTS)) break;
    delays.push(delay);
    at += delay;
  }
  return delays;
}

function describeAcknowledgement({ status, body }: DeliveryConfig['acknowledgedBy']): string {
  const statuses = toList(status).join(' or ');
  if (body === undefined) return `a response with status ${statuses}`;
  const what = body.json === undefined ? 'the body' : `${body.json} in its body`;
  return `a response with status ${statuses} in which ${what} is ${JSON.stringify(body.equals)}`;
}

function describeSignature({ secrets }: NonNullable<DeliveryConfig['sign']>): string {
  const by = secrets.length === 1 ? 'one secret' : `each of ${secrets.length} secrets`;
  return `signed at each attempt as Standard Webhooks, with ${by}, in place of a signature of the sender`;
}

const SECOND: Millis = 1000;
const MINUTE: Millis = 60 * SECOND;
const HOUR: Millis = 60 * MINUTE;

/** In the two largest units, rounded: 10s, 2m40s, 5h41m, 72h. */
function formatRough(delay: Millis): string {
  const seconds = Math.round(delay / SECOND) * SECOND;
  if (seconds < HOUR) return joinUnits(seconds, [MINUTE, 'm'], [SECOND, 's']);
  return joinUnits(Math.round(delay / MINUTE) * MINUTE, [HOUR, 'h'], [MINUTE, 'm']);
}

type Unit = readonly [length: Millis, name: string];

function joinUnits(delay: Millis, [long, longName]: Unit, [short, shortName]: Unit): string {
  const whole = Math.floor(delay / long);
  const rest = (delay % long) / short;
  return `${whole > 0 ? `${whole}${longName}` : ''}${rest > 0 || whole === 0 ? `${rest}${shortName}` : ''}`;
}
