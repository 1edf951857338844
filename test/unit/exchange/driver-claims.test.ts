import { describe, expect, test } from 'vitest';
import type { KeyRecord } from '../../../src/core/idempotency/key-record.ts';
import { DrivenExchange, START, type DrivenExchangeOptions } from '../../support/core/driven-exchange.ts';
import { failure, response, SEND_ONCE } from '../../support/core/policy-builders.ts';

const KEYED = { method: 'POST', keyed: true } as const;
const UNRESOLVED: KeyRecord = { firstSentAt: 0, isAnswered: false };

/** A write that claims its key: its claim is under way. */
const claiming = (options: DrivenExchangeOptions = {}): DrivenExchange =>
  new DrivenExchange({ facts: KEYED, ...options, policy: { claims: true, ...options.policy } }).start();

const keyEvents = (exchange: DrivenExchange) => exchange.ofType('key').map(({ upstream, event }) => [upstream, event]);

describe('a claim of a key', () => {
  test('granted at once: the record is read again before the send, and no wait is reported', () => {
    const exchange = claiming();
    expect(exchange.effects).toEqual(['body', `claim ${START + 10_000}`]);
    expect(exchange.driver.isDone).toBe(false);
    exchange.at(1030, (driver) => driver.onClaimed(undefined));
    expect(exchange.effects.slice(2)).toEqual(['look']);
    exchange.at(1031, (driver) => driver.onKeyKnown(undefined)).answer(response(201));
    expect(exchange.effects.slice(2)).toEqual(['look', 'send 1', 'forward']);
    expect(exchange.driver.isDone).toBe(true);
    expect(exchange.driver.queued).toBe(0);
    expect([exchange.steps, keyEvents(exchange)]).toEqual([[], []]);
  });

  test('granted after a wait for another request: the wait counts as time in a queue, and is reported', () => {
    const exchange = claiming().at(1250, (driver) => driver.onClaimed(undefined, true));
    expect(exchange.driver.queued).toBe(250);
    expect(exchange.steps).toEqual([{ what: 'claimed', at: 1250, waited: 250, why: undefined }]);
    expect(keyEvents(exchange)).toEqual([['up', 'awaited']]);
  });

  test('passes on what is recorded: a rejection leaves an unresolved write unknown', () => {
    const exchange = claiming({ policy: { retry: SEND_ONCE } });
    exchange.at(1250, (driver) => driver.onClaimed(UNRESOLVED));
    exchange.at(1251, (driver) => driver.onKeyKnown(UNRESOLVED)).answer(response(503));
    exchange.at(1262, (driver) => driver.onKeyKnown(UNRESOLVED));
    expect(exchange.verdict).toMatchObject({ kind: 'unknown', reason: 'not_processed', status: 503 });
  });

  test('passes on the kept response, which is replayed and reported', () => {
    const exchange = claiming().at(1250, (driver) => driver.onClaimed(undefined, false, 'kept'));
    expect(exchange.effects.slice(2)).toEqual(['replay']);
    expect(keyEvents(exchange)).toEqual([['up', 'replayed']]);
    expect(exchange.steps).toEqual([]);
  });

  test.each([
    ['key_in_use', { isInUse: true }],
    ['key_store_lost', { isInDoubt: true }],
  ] as const)('granted, and lost before the send: the refusal with %s is reported once', (why, more) => {
    const exchange = claiming().at(1250, (driver) => driver.onClaimed(undefined));
    exchange.at(1300, (driver) => driver.onKeyKnown({ ...UNRESOLVED, ...more }));
    expect(exchange.steps).toEqual([{ what: 'claimed', at: 1300, waited: 0, why }]);
    expect(keyEvents(exchange)).toEqual([['up', why]]);
  });

  test.each([
    ['key_in_use', true, { kind: 'refuse', why: 'key_in_use' }],
    ['key_store_lost', false, { kind: 'refuse', why: 'key_store_lost' }],
    ['key_store_lost', true, { kind: 'unknown', reason: 'key_store_lost' }],
  ] as const)('refused with %s, an earlier effect possible: %s', (why, mayHaveTakenEffect, verdict) => {
    const exchange = claiming().at(1400, (driver) => driver.onClaimRefused(why, mayHaveTakenEffect));
    expect(exchange.verdict).toMatchObject({ ...verdict, attempts: 0 });
    expect(exchange.driver.queued).toBe(400);
    expect(exchange.steps).toEqual([{ what: 'claimed', at: 1400, waited: 400, why }]);
    expect(keyEvents(exchange)).toEqual([['up', why]]);
  });

  test('stopped by the shutdown: refused, and no event of the key is counted', () => {
    const exchange = claiming().at(1400, (driver) => driver.expireDrain());
    expect(exchange.effects.at(-1)).toBe('stopClaim');
    expect(exchange.verdict).toBeUndefined();
    exchange.at(1400, (driver) => driver.onClaimRefused('draining', false));
    expect(exchange.verdict).toMatchObject({ kind: 'refuse', why: 'draining' });
    expect(exchange.steps).toEqual([{ what: 'claimed', at: 1400, waited: 400, why: 'draining' }]);
    expect(keyEvents(exchange)).toEqual([]);
  });

  test('is made only if the body has the key, for a request without one in its head', () => {
    const exchange = new DrivenExchange({ facts: { method: 'POST' }, policy: { claims: true } }).start();
    expect(exchange.effects).toEqual(['body', 'send 1']);
  });

  test('is ignored, as is the record, when it comes after the client has gone', () => {
    const exchange = claiming().at(1100, (driver) => driver.onClientGone());
    exchange.driver.onClaimed(undefined, true);
    exchange.driver.onClaimRefused('key_in_use', true);
    exchange.driver.onKeyKnown(UNRESOLVED);
    expect(exchange.effects.slice(2)).toEqual(['gone']);
    expect(exchange.driver.queued).toBe(0);
    expect(keyEvents(exchange)).toEqual([]);
    expect(exchange.steps).toEqual([{ what: 'gone', at: 1100, during: 'claim' }]);
  });

  test('that is answered twice counts once', () => {
    const exchange = claiming().at(1030, (driver) => driver.onClaimed(undefined));
    exchange.driver.onClaimed(undefined, true);
    exchange.driver.onClaimRefused('key_in_use', false);
    expect(exchange.effects.slice(2)).toEqual(['look']);
    exchange.driver.onKeyKnown(undefined);
    exchange.driver.onKeyKnown(undefined);
    expect(exchange.effects.slice(2)).toEqual(['look', 'send 1']);
    expect(exchange.driver.queued).toBe(0);
  });
});

describe('how a write with a key ends is reported', () => {
  const ttl = { ...KEYED, keyTtl: 500 };
  const longAgo = { firstSentAt: 100, isAnswered: true };

  test.each([
    ['key_expired', { ...longAgo }, 'none', { kind: 'refuse', why: 'key_expired' }, 'key_expired'],
    [
      'unknown',
      { firstSentAt: 100, isAnswered: false },
      'none',
      { kind: 'unknown', reason: 'key_expired' },
      'key_expired',
    ],
    ['key_reused', { ...longAgo }, 'other_request', { kind: 'refuse', why: 'key_reused' }, 'key_reused'],
    [
      'unknown, with a reused key',
      { firstSentAt: 100, isAnswered: false },
      'other_request',
      { kind: 'unknown', reason: 'key_reused' },
      'key_reused',
    ],
  ] as const)('%s: an event, and a step without a wait', (_, record, kept, verdict, event) => {
    const exchange = claiming({ facts: ttl }).at(1250, (driver) => driver.onClaimed(record, false, kept));
    if (exchange.effects.at(-1) === 'look') exchange.driver.onKeyKnown(record);
    expect(exchange.verdict).toMatchObject(verdict);
    expect(keyEvents(exchange)).toEqual([['up', event]]);
    expect(exchange.steps).toEqual([{ what: 'claimed', at: 1250, waited: 0, why: event }]);
  });

  test.each([
    ['an unknown outcome', failure('reset', true), 'unknown'],
    ['a failure', failure('connect', false), 'fail'],
    ['a response', response(201), 'forward'],
  ] as const)('%s is not an event of its key, and without a retry there is no end of one', (_, outcome, kind) => {
    const exchange = new DrivenExchange({ facts: KEYED, policy: { retry: SEND_ONCE } }).start().answer(outcome);
    expect(exchange.verdict?.kind).toBe(kind);
    expect(keyEvents(exchange)).toEqual([]);
    expect(exchange.steps.filter(({ what }) => what === 'claimed')).toEqual([]);
    expect(exchange.ofType('retry-end')).toHaveLength(kind === 'forward' ? 0 : 1);
  });
});
