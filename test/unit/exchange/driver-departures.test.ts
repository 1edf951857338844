import { describe, expect, test } from 'vitest';
import { DrivenExchange, START, type DrivenExchangeOptions } from '../../support/core/driven-exchange.ts';
import { limitedTo, pollPolicy, response } from '../../support/core/policy-builders.ts';

const WRITE = { facts: { method: 'POST', keyed: true }, policy: { claims: true } } as const;
const EXPECTS = { facts: { method: 'POST', expectsContinue: true } } as const;

/** An exchange that is admitted and reads its body. */
const uploading = (options: DrivenExchangeOptions = {}): DrivenExchange =>
  new DrivenExchange({ ...EXPECTS, ...options }).start();
/** One that is admitted and reads the record of its key. */
const looking = (options: DrivenExchangeOptions = {}): DrivenExchange =>
  new DrivenExchange({ ...WRITE, ...options }).start().at(START + 5, (driver) => driver.onClaimed(undefined));

describe('a client that leaves after its admission and before the send', () => {
  test.each([
    ['during the upload', uploading],
    ['while the record of its key is read', looking],
  ] as const)('%s, leaves its connection to the request that waits for it', (_, admit) => {
    const exchange = admit({ connections: 1 });
    const next = exchange.arrive();
    expect(next.admission).toBeUndefined();
    exchange.at(START + 50, (driver) => driver.onClientGone());
    expect(next.admission).toEqual({ kind: 'admitted' });
    expect(exchange.verdict).toEqual({ kind: 'gone', unknown: false, attempts: 0, retryOutcome: undefined });
  });
});

describe('a departure is reported with what the exchange was waiting for', () => {
  test.each<[string, () => DrivenExchange]>([
    ['body', () => uploading()],
    ['claim', () => new DrivenExchange(WRITE).start()],
    ['claim', () => looking()],
    ['queue', () => new DrivenExchange({ upstream: limitedTo(1), isTokenTaken: true }).start()],
    ['attempt', () => new DrivenExchange().start()],
    ['wait', () => new DrivenExchange().start().answer(response(503))],
  ])('%s', (during, begin) => {
    const exchange = begin();
    const time = START + 50;
    exchange.at(time, (driver) => driver.onClientGone());
    expect(exchange.verdict?.kind).toBe('gone');
    expect(exchange.steps.filter(({ what }) => what === 'gone')).toEqual([{ what: 'gone', at: time, during }]);
  });

  test('and not at all before the start and after the end', () => {
    const exchange = new DrivenExchange();
    exchange.driver.onClientGone();
    expect(exchange.effects).toEqual([]);
    exchange.start().answer(response(200));
    exchange.driver.onClientGone();
    expect(exchange.effects).toEqual(['body', 'send 1', 'forward']);
    expect(exchange.steps).toEqual([]);
  });

  test('and an attempt that it ends took the time since its send', () => {
    const exchange = new DrivenExchange().start().at(START + 50, (driver) => driver.onClientGone());
    expect(exchange.ofType('attempt')).toMatchObject([{ code: 'aborted', took: 50, request: 'r-1' }]);
  });
});

describe('the driver', () => {
  test('asks for admission without the body if the request expects 100 Continue, and for its retry with the body', () => {
    const exchange = uploading({ facts: { method: 'PUT', expectsContinue: true } });
    expect(exchange.ticket.isBodyReceived).toBe(false);
    exchange.driver.onBodyRead(true);
    exchange.answer(response(503)).at(START + 500, (driver) => driver.onWake());
    expect(exchange.effects).toEqual(['body', 'send 1', 'discard', 'sleep 100', 'send 2']);
    expect(exchange.ticket.isBodyReceived).toBe(true);
  });

  test('sets the timer of the gate again at every step that may change its next wake', () => {
    const exchange = new DrivenExchange();
    const added = (run: () => void): boolean => {
      const before = exchange.rearms;
      run();
      return exchange.rearms > before;
    };
    expect(added(() => exchange.start())).toBe(true); // admission
    expect(added(() => exchange.answer(response(503)))).toBe(true); // the place in flight is given back
    expect(added(() => exchange.at(START + 500, (driver) => driver.onWake()))).toBe(true);
    expect(added(() => exchange.answer(response(200)))).toBe(true); // the end
    expect(added(() => exchange.driver.onResponseEnd())).toBe(true);
  });
});

describe('a shutdown', () => {
  const queued = (): DrivenExchange => new DrivenExchange({ upstream: limitedTo(1), isTokenTaken: true }).start();

  test('whose time is over refuses a queued request, which gives up its place', () => {
    const exchange = queued();
    expect(exchange.effects).toEqual(['body']);
    exchange.at(START + 300, (driver) => driver.expireDrain());
    expect(exchange.verdict).toEqual({
      kind: 'refuse',
      why: 'draining',
      retryAfterMs: 1000,
      attempts: 0,
      retryOutcome: undefined,
    });
    expect(exchange.store.findLimit(exchange.ticket.limitRefs[0]!)?.queue.size).toBe(0);
    expect(exchange.steps.at(-1)).toEqual({ what: 'draining', at: START + 300 });
    expect(exchange.ofType('dequeued')).toMatchObject([{ admitted: false, waited: 300 }]);
  });

  test.each<[string, () => DrivenExchange]>([
    ['that was sent', () => new DrivenExchange().start()],
    ['whose body is being read', () => uploading()],
    ['that sleeps before a retry', () => new DrivenExchange().start().answer(response(503))],
    ['that has ended', () => new DrivenExchange().start().answer(response(200))],
  ])('whose time is over changes nothing for a request %s', (_, begin) => {
    const exchange = begin();
    const before = [...exchange.effects];
    exchange.driver.expireDrain();
    expect(exchange.effects).toEqual(before);
    expect(exchange.steps.filter(({ what }) => what === 'draining')).toEqual([]);
  });

  test('that cuts a wait is reported as a step', () => {
    const exchange = new DrivenExchange().start().answer(response(503));
    exchange.at(START + 50, (driver) => driver.drain(START + 60));
    expect(exchange.verdict).toMatchObject({ kind: 'refuse', why: 'draining' });
    expect(exchange.steps.at(-1)).toEqual({ what: 'draining', at: START + 50 });
  });

  test.each([
    ['begins if it ends with it', START + 110, ['discard', 'sleep 100']],
    ['is denied if it would end after it', START + 109, ['forward']],
  ] as const)('a retry under way %s', (_, by, effects) => {
    const exchange = new DrivenExchange().start();
    exchange.driver.drain(by);
    expect(exchange.answer(response(503)).effects.slice(2)).toEqual(effects);
  });

  test('changes nothing after the client left during a wait for a poll', () => {
    const pollWait = { tryEnter: () => true, onPollOutcome: () => undefined, leave: () => undefined };
    const exchange = new DrivenExchange({ facts: { preferredWait: 60_000 }, policy: { poll: pollPolicy() }, pollWait });
    exchange
      .start()
      .answer(response(202))
      .at(START + 50, (driver) => driver.onClientGone());
    const before = [...exchange.effects];
    exchange.driver.drain(START + 100_000);
    expect(exchange.effects).toEqual(before);
  });
});
