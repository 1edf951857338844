/** A client that pays once over unreliable connections, and records every response. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { Received, Sent } from './send.ts';
import { send } from './send.ts';

/** Where the key is sent; `minted`: not before the proxy has returned a generated one. */
export type KeyLocation = 'header' | 'body' | 'minted';

/** The outcome of one charge request; `nothing`: the connection broke or the client timed out. */
export type PaymentAnswer =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'charged'; readonly id: string }
  /** `Tidegate-Outcome: unknown`. */
  | { readonly kind: 'unknown' }
  /** Another request with its key is in progress, according to the proxy or the upstream. */
  | { readonly kind: 'in use' }
  /** Any other response: the request had no effect. */
  | { readonly kind: 'failed'; readonly status: number };

export interface Payment {
  readonly intent: string;
  /** In order of arrival. */
  readonly answers: PaymentAnswer[];
  /** Responses "not charged" after an earlier response "unknown". */
  readonly contradictions: PaymentAnswer[];
  /** The key for a repeat; undefined while none is known. */
  key: string | undefined;
}

export interface PaymentOptions {
  readonly url: string;
  readonly keyLocation: KeyLocation;
  readonly seed: number;
}

/** Repeats the payment until it is charged or the client gives up, with random behaviour from `seed`. */
export async function pay({ url, keyLocation, seed }: PaymentOptions, number: number): Promise<Payment> {
  const random = seededRandom(1_000_003 * seed + number);
  const intent = `${keyLocation}-${seed}-${number}`;
  const payment: Payment = {
    intent,
    answers: [],
    contradictions: [],
    key: keyLocation === 'minted' ? undefined : `key-${intent}`,
  };
  const maxTries = 1 + Math.floor(6 * random());
  for (let tries = 0; tries < maxTries; tries += 1) {
    // Without a key a second request is a second intent.
    const isTwice = payment.key !== undefined && random() < 0.15;
    const asked = [ask(url, keyLocation, payment, random)];
    if (isTwice) asked.push(ask(url, keyLocation, payment, random));
    const answers = await Promise.all(asked);
    note(payment, answers);
    if (answers.some(({ kind }) => kind === 'charged')) break;
    if (payment.key === undefined && answers.some(({ kind }) => kind === 'nothing')) break;
    await sleep(30 * random());
  }
  return payment;
}

/** Repeats the payment once, without a client timeout. */
export async function payNow(url: string, place: KeyLocation, payment: Payment): Promise<PaymentAnswer> {
  const answer = await ask(url, place, payment, () => 0.99);
  note(payment, [answer]);
  return answer;
}

/**
 * Records responses that arrived together. Their order is unknown: a response "charged", or one lost with its connection,
 * may have resolved the key before the other request was refused, and such a refusal is correct.
 */
function note({ answers: earlier, contradictions }: Payment, answers: readonly PaymentAnswer[]): void {
  const isResolved = [...earlier, ...answers].some(({ kind }) => kind === 'charged' || kind === 'nothing');
  const isOpen = earlier.some(({ kind }) => kind === 'unknown') && !isResolved;
  if (isOpen) contradictions.push(...answers.filter(({ kind }) => kind === 'failed'));
  earlier.push(...answers);
}

async function ask(url: string, place: KeyLocation, payment: Payment, random: Random): Promise<PaymentAnswer> {
  const leaving = new AbortController();
  const timer = random() < 0.08 ? setTimeout(() => leaving.abort(), 200 * random()) : undefined;
  try {
    const answer = await send(url, '/v1/charges', { ...order(place, payment), signal: leaving.signal });
    payment.key ??= answer.header('tidegate-idempotency-key');
    return read(answer);
  } catch {
    return { kind: 'nothing' };
  } finally {
    clearTimeout(timer);
  }
}

function order(place: KeyLocation, { intent, key }: Payment): Sent {
  const inBody = place === 'body' ? { idempotency_key: key } : {};
  const headers = ['Content-Type', 'application/json', 'X-Intent', intent, 'X-Api-Key', intent];
  if (place !== 'body' && key !== undefined) headers.push('Idempotency-Key', key);
  const body = JSON.stringify({ amount: 100, currency: 'eur', ...inBody, metadata: { intent } });
  return { method: 'POST', headers, body };
}

function read({ status, header, json }: Received): PaymentAnswer {
  if (header('tidegate-outcome') === 'unknown') return { kind: 'unknown' };
  if (status < 300) return { kind: 'charged', id: String(json()['id']) };
  return status === 409 ? { kind: 'in use' } : { kind: 'failed', status };
}
