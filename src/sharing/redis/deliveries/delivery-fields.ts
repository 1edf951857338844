import { hash } from 'node:crypto';
import type { NewDelivery } from '../../../core/delivery/delivery-store.ts';
import type { Delivery, DeliveryAttempt, DeliveryEnd, DeliveryState } from '../../../core/delivery/delivery.ts';

/** What the scripts return of a delivery, in this order. */
export const DELIVERY_FIELDS = [
  'kind',
  'route',
  'upstream',
  'acceptedAt',
  'owner',
  'sender',
  'eventId',
  'orderKey',
  'state',
  'until',
  'attempts',
  'startedAt',
  'attempt',
  'since',
] as const;

type FieldName = (typeof DELIVERY_FIELDS)[number];

/** Hexadecimal digits of a SHA-256. */
const DIGEST_DIGITS = 32;

/** Names an event or an order of a route; empty for none. */
export function digestOf(route: string, value: string | undefined): string {
  return value === undefined ? '' : hash('sha256', `${route}\0${value}`, 'hex').slice(0, DIGEST_DIGITS);
}

/** Names and values of the fields that do not change, but those that the script itself sets. `kind` is the first: the script reads it. */
export function encodeFields(delivery: NewDelivery): readonly string[] {
  const { kind, upstream, owner, sender, eventId, orderKey } = delivery;
  return [
    ...['kind', kind, 'upstream', upstream, 'owner', owner],
    ...(sender === owner ? [] : ['sender', sender]),
    ...(eventId === undefined ? [] : ['eventId', eventId]),
    ...(orderKey === undefined ? [] : ['orderKey', orderKey]),
  ];
}

/** @param values of `DELIVERY_FIELDS`. @returns undefined if there is no such delivery */
export function decodeFields(id: string, values: unknown): Delivery | undefined {
  if (!Array.isArray(values)) return undefined;
  const field = (name: FieldName): string | undefined => {
    const value: unknown = values[DELIVERY_FIELDS.indexOf(name)];
    return typeof value === 'string' || value instanceof Buffer ? value.toString() : undefined;
  };
  const [state, startedAt, attempt] = [field('state'), field('startedAt'), field('attempt')];
  if (state === undefined) return undefined;
  const owner = field('owner') ?? '';
  return {
    id,
    kind: field('kind') === 'write' ? 'write' : 'message',
    route: field('route') ?? '',
    upstream: field('upstream') ?? '',
    acceptedAt: Number(field('acceptedAt')),
    owner,
    sender: field('sender') ?? owner,
    eventId: field('eventId'),
    orderKey: field('orderKey'),
    state: toState(state, Number(field('until')), field('since')),
    attempts: Number(field('attempts')),
    startedAt: startedAt === undefined ? undefined : Number(startedAt),
    lastAttempt: attempt === undefined ? undefined : decodeAttempt(attempt),
  };
}

/** Empty for none. */
export function encodeAttempt(attempt: DeliveryAttempt | undefined): string {
  if (attempt === undefined) return '';
  const { at, took, status = '', reason = '' } = attempt;
  return [at, took, status, reason].join(' ');
}

function decodeAttempt(text: string): DeliveryAttempt | undefined {
  const [, at, took, status = '', reason = ''] = /^(\S+) (\S+) (\d*) (.*)$/s.exec(text) ?? [];
  if (at === undefined) return undefined;
  return {
    at: Number(at),
    took: Number(took),
    status: status === '' ? undefined : Number(status),
    reason: reason === '' ? undefined : reason,
  };
}

function toState(state: string, until: number, since: string | undefined): DeliveryState {
  if (state === 'open') {
    return since === undefined ? { kind: 'waiting', until } : { kind: 'sending', since: Number(since) };
  }
  return { kind: ENDS.find((end) => end === state) ?? 'dead', at: until };
}

const ENDS: readonly DeliveryEnd[] = ['delivered', 'dead', 'canceled', 'unknown'];
