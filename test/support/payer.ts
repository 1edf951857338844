/** A client that wants to pay once, over bad connections, and remembers all that it was told. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { Received, Sent } from './send.ts';
import { send } from './send.ts';

/** Where the key goes; `minted`: nowhere, until the proxy has told one. */
export type KeyPlace = 'header' | 'body' | 'minted';

/** What one request to charge was answered; `nothing`: its connection broke, or its client had enough. */
export type Told =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'charged'; readonly id: string }
  /** `Tidegate-Outcome: unknown`. */
  | { readonly kind: 'unknown' }
  /** Another request with its key is at work on it: ours says so, or the upstream. */
  | { readonly kind: 'in use' }
  /** Whatever else: nothing has come of this request. */
  | { readonly kind: 'failed'; readonly status: number };

export interface Payment {
  readonly intent: string;
  /** In the order in which the answers came. */
  readonly told: Told[];
  /** Those that said of it that nothing has happened when one before had said that nobody knows. */
  readonly contradictions: Told[];
  /** What it would be repeated with; undefined where nobody has told one. */
  key: string | undefined;
}

export interface Payer {
  readonly url: string;
  readonly place: KeyPlace;
  readonly seed: number;
}

/** Tries until it is charged, or gives up. What it does, and how often, a seed says. */
export async function pay({ url, place, seed }: Payer, number: number): Promise<Payment> {
  const random = seededRandom(1_000_003 * seed + number);
  const intent = `${place}-${seed}-${number}`;
  const payment: Payment = {
    intent,
    told: [],
    contradictions: [],
    key: place === 'minted' ? undefined : `key-${intent}`,
  };
  const patience = 1 + Math.floor(6 * random());
  for (let tries = 0; tries < patience; tries += 1) {
    // Without a key a second request is a second intent.
    const isTwice = payment.key !== undefined && random() < 0.15;
    const asked = [ask(url, place, payment, random)];
    if (isTwice) asked.push(ask(url, place, payment, random));
    const answers = await Promise.all(asked);
    note(payment, answers);
    if (answers.some(({ kind }) => kind === 'charged')) break;
    if (payment.key === undefined && answers.some(({ kind }) => kind === 'nothing')) break;
    await sleep(30 * random());
  }
  return payment;
}

/** Asks once more, with all the time in the world. */
export async function payNow(url: string, place: KeyPlace, payment: Payment): Promise<Told> {
  const told = await ask(url, place, payment, () => 0.99);
  note(payment, [told]);
  return told;
}

/**
 * Of answers that came at a time it is not known which was first: one that says "charged" may have resolved the key before the
 * other was refused, and refusals of an answered write are plain. So may an answer have that a broken connection has lost.
 */
function note({ told, contradictions }: Payment, answers: readonly Told[]): void {
  const isResolved = [...told, ...answers].some(({ kind }) => kind === 'charged' || kind === 'nothing');
  const isOpen = told.some(({ kind }) => kind === 'unknown') && !isResolved;
  if (isOpen) contradictions.push(...answers.filter(({ kind }) => kind === 'failed'));
  told.push(...answers);
}

async function ask(url: string, place: KeyPlace, payment: Payment, random: Random): Promise<Told> {
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

function order(place: KeyPlace, { intent, key }: Payment): Sent {
  const inBody = place === 'body' ? { idempotency_key: key } : {};
  const headers = ['Content-Type', 'application/json', 'X-Intent', intent, 'X-Api-Key', intent];
  if (place !== 'body' && key !== undefined) headers.push('Idempotency-Key', key);
  const body = JSON.stringify({ amount: 100, currency: 'eur', ...inBody, metadata: { intent } });
  return { method: 'POST', headers, body };
}

function read({ status, header, json }: Received): Told {
  if (header('tidegate-outcome') === 'unknown') return { kind: 'unknown' };
  if (status < 300) return { kind: 'charged', id: String(json()['id']) };
  return status === 409 ? { kind: 'in use' } : { kind: 'failed', status };
}
