import { describe, expect, test } from 'vitest';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import type { KeyClaimListener, KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';
import { KeyClient } from '../../../src/sharing/keys/key-client.ts';
import type { KeyOperation, KeyReply } from '../../../src/sharing/keys/key-protocol.ts';
import { WorkerOpenWrites } from '../../../src/sharing/keys/worker-open-writes.ts';
import { MemoryResponseStore } from '../../../src/store/responses/memory-response-store.ts';
import { KeyServer } from '../../../src/sharing/keys/key-server.ts';

const TTL = 1000;

function requestFor(name: string, more: Partial<KeyClaimRequest> = {}): KeyClaimRequest {
  const identity = { upstream: 'up', name, credential: 1, owner: 1, credentialHeader: 'authorization', body: 1 };
  return {
    identity,
    place: { fairnessKey: 'a', client: 'a' },
    concurrent: 'wait',
    ttl: TTL,
    ...{ endpoint: 'e1', onStoreLost: 'refuse' },
    ...more,
  };
}

/** A primary and its workers, whose messages arrive at once unless the test holds them. */
function startProcesses() {
  const clock = { time: 0, now: () => clock.time };
  const clients: KeyClient[] = [];
  const operations: KeyOperation[] = [];
  const logged: string[] = [];
  /** Replies that are awaited. */
  const timers: (() => void)[] = [];
  const openWrites = new WorkerOpenWrites(
    {
      onSent: ({ requestId }) => logged.push(`sent ${requestId}`),
      onEnd: (requestId) => logged.push(`end ${requestId}`),
    },
    ({ requestId }) => logged.push(`interrupted ${requestId}`),
  );
  const store = new RegistryKeyStore(new KeyRegistry(), clock, () => () => undefined);
  const server = new KeyServer(
    store,
    (worker, reply) => deliver(worker, reply),
    openWrites,
    new MemoryResponseStore(clock),
  );
  let hold: KeyReply[] | undefined;
  const deliver = (worker: number, reply: KeyReply): void => {
    if (hold === undefined) clients[worker]?.onReply(reply);
    else hold.push(reply);
  };
  const startWorker = (): KeyClient => {
    const worker = clients.length;
    server.join(worker);
    const client = new KeyClient({
      clock,
      send: (sent) => {
        operations.push(...sent);
        server.onOperations(worker, sent);
      },
      schedule: (run) => run(),
      after: (_delay, run) => {
        timers.push(run);
        return () => void timers.splice(timers.indexOf(run), 1);
      },
    });
    clients.push(client);
    return client;
  };
  const holdReplies = (): KeyReply[] => (hold = []);
  return { clock, server, startWorker, operations, holdReplies, logged, timers };
}

/** Records the results of a claim. */
function recorder(): KeyClaimListener & { readonly results: unknown[] } {
  const results: unknown[] = [];
  return {
    results,
    onClaimed: (record) => results.push(['claimed', record]),
    onClaimRefused: (why, mayHaveTakenEffect) => results.push(['refused', why, mayHaveTakenEffect]),
  };
}

describe('a key that the primary keeps', () => {
  test('costs one round trip for an answered write, and none for its look-ups', () => {
    const { startWorker, operations } = startProcesses();
    const claim = startWorker().makeClaim(requestFor('order'));
    claim.begin(recorder(), 100);
    const known: unknown[] = [];
    claim.lookUp((record) => known.push(record));
    claim.onSend('e1');
    claim.recordOutcome('rejected');
    claim.lookUp((record) => known.push(record));
    claim.release({ kind: 'other' });
    claim.close();
    expect(known).toEqual([undefined, undefined]);
    expect(operations.map((each) => each.do)).toEqual(['claim', 'release', 'close']); // the primary has the only endpoint
  });

  test('has the endpoint of the first send', () => {
    const { startWorker } = startProcesses();
    const first = startWorker().makeClaim(requestFor('order', { endpoint: undefined }));
    first.begin(recorder(), 100);
    expect(first.endpoint).toBeUndefined();
    first.onSend('e2');
    expect(first.endpoint).toBe('e2');
    first.recordOutcome('may_have_taken_effect');
    first.release({ kind: 'other' });
    const second = startWorker().makeClaim(requestFor('order'));
    second.begin(recorder(), 100);
    expect(second.endpoint).toBe('e2');
  });

  test('with `concurrent: pass` has the endpoint that the first of several requests was sent to', () => {
    const { startWorker } = startProcesses();
    const [one, other] = [startWorker(), startWorker()].map((worker) =>
      worker.makeClaim(requestFor('order', { endpoint: undefined, concurrent: 'pass' })),
    );
    one?.begin(recorder(), 100);
    other?.begin(recorder(), 100);
    other?.onSend('e2');
    one?.onSend('e1');
    // A request looks up the state of the write before each attempt.
    for (const claim of [one, other]) claim?.lookUp((record) => expect(record?.isAnswered).toBe(false));
    expect([one?.endpoint, other?.endpoint]).toEqual(['e2', 'e2']);
  });

  test('is sent to no endpoint again if its worker ended before it reported the endpoint', () => {
    const { server, startWorker } = startProcesses();
    const [one, other] = [startWorker(), startWorker()];
    one?.makeClaim(requestFor('order', { endpoint: undefined })).begin(recorder(), 100);
    server.leave(0);
    const repeat = other?.makeClaim(requestFor('order', { endpoint: undefined }));
    repeat?.begin(recorder(), 100);
    expect(repeat?.endpoint).toBe('');
  });

  test('is looked up after the process has stopped waiting for it: the write of the other request may have taken effect', () => {
    const { startWorker, clock, holdReplies } = startProcesses();
    const [one, other] = [startWorker(), startWorker()];
    one.makeClaim(requestFor('order')).begin(recorder(), 100);
    const waiting = other.makeClaim(requestFor('order'));
    clock.time = 5;
    const looked: unknown[] = [];
    // A drain stops the wait, and asks what is known of the write before it has the refusal.
    waiting.begin({ onClaimed: () => undefined, onClaimRefused: () => undefined }, 100);
    const held = holdReplies();
    waiting.stopWaiting();
    waiting.lookUp((record) => looked.push(record));
    for (const reply of held) other.onReply(reply);
    expect(looked).toEqual([{ firstSentAt: 0, isAnswered: false }]);
  });

  test('is not granted after the process stops waiting, even if the grant is on its way', () => {
    const { startWorker, holdReplies } = startProcesses();
    const [one, other] = [startWorker(), startWorker()];
    const first = one.makeClaim(requestFor('order'));
    first.begin(recorder(), 100);
    const waiting = recorder();
    const second = other.makeClaim(requestFor('order'));
    second.begin(waiting, 100);
    const held = holdReplies();
    first.release({ kind: 'other' });
    second.stopWaiting();
    for (const reply of held) other.onReply(reply);
    expect(waiting.results).toEqual([['refused', 'draining', false]]);
    const third = one.makeClaim(requestFor('order'));
    const replies = holdReplies();
    third.begin(recorder(), 100);
    expect(replies.map(({ type }) => type)).toEqual(['claimed']); // the primary has released it again
  });

  test('counts as in progress for the refusals of other workers from the grant on', () => {
    const { startWorker } = startProcesses();
    const [one, other] = [startWorker(), startWorker()];
    const found: boolean[] = [];
    const find = (names?: readonly string[]): void =>
      other.findUnresolved('up', names, (isUnresolved) => found.push(isUnresolved));
    find(['order']);
    const claim = one.makeClaim(requestFor('order'));
    claim.begin(recorder(), 100);
    find(['order']);
    find(['another']);
    find();
    claim.release({ kind: 'other' });
    find(['order']);
    expect(found).toEqual([false, true, false, true, false]);
    expect(other.mayHaveUnresolved()).toBe(true);
  });

  test('does not count for the refusals of other clients if each has keys of its own', () => {
    const { startWorker } = startProcesses();
    const [one, other] = [startWorker(), startWorker()];
    const { identity } = requestFor('order');
    one
      .makeClaim(requestFor('order', { identity: { ...identity, keyOwner: 1, keyOwnerKind: 10 } }))
      .begin(recorder(), 100);
    const found: boolean[] = [];
    for (const [keyOwner, keyOwnerKind] of [[1, 10], [2, 10], [2, 11], []]) {
      other.findUnresolved('up', ['order'], (each) => found.push(each), { keyOwner, keyOwnerKind });
    }
    expect(found).toEqual([true, false, true, true]);
  });
});

describe('a response that a worker is sending', () => {
  const ANSWERED = { firstSentAt: 0, isAnswered: true, isFinal: true };

  function startResponding() {
    const { startWorker, holdReplies } = startProcesses();
    const [one, other] = [startWorker(), startWorker()];
    const first = one.makeClaim(requestFor('order'));
    first.begin(recorder(), 100);
    first.onSend('e1');
    first.recordOutcome('answered');
    const found: boolean[] = [];
    const find = (): void => {
      for (const names of [['order'], undefined]) other.findUnresolved('up', names, (each) => found.push(each));
    };
    return { one, other, first, holdReplies, found, find };
  }

  test('leaves the write open for refusals of other workers until its end', () => {
    const { first, found, find } = startResponding();
    first.release({ kind: 'answered', isFinal: true, isDelivered: true });
    find();
    first.close();
    find();
    expect(found).toEqual([true, true, false, false]);
  });

  test('is known to the request that waited for the key, and so is its end', () => {
    const { other, first } = startResponding();
    const waited = recorder();
    const second = other.makeClaim(requestFor('order'));
    second.begin(waited, 100);
    first.release({ kind: 'answered', isFinal: true, isDelivered: true });
    const known: unknown[] = [];
    second.lookUp((record) => known.push(record));
    first.close();
    second.lookUp((record) => known.push(record));
    const arriving = { ...ANSWERED, isArriving: true };
    expect(waited.results).toEqual([['claimed', arriving]]);
    expect(known).toEqual([arriving, ANSWERED]);
  });

  test('is asked for again before a rejection counts, in case the announcement of its cut was lost', () => {
    const { other, first, holdReplies } = startResponding();
    const second = other.makeClaim(requestFor('order'));
    second.begin(recorder(), 100);
    first.release({ kind: 'answered', isFinal: true, isDelivered: true });
    second.onSend('e1');
    second.recordOutcome('rejected');
    const lost = holdReplies();
    first.onUndelivered();
    first.close();
    expect(lost.map(({ type }) => type)).toContain('changed');
    lost.length = 0;
    const known: unknown[] = [];
    second.lookUp((record) => known.push(record));
    for (const reply of lost) other.onReply(reply);
    expect(known).toEqual([{ firstSentAt: 0, isAnswered: false }]);
  });

  test('is not announced to requests with other keys, nor if nobody has the key', () => {
    const { other, first, holdReplies } = startResponding();
    other.makeClaim(requestFor('another')).begin(recorder(), 100);
    first.release({ kind: 'answered', isFinal: true, isDelivered: true });
    const replies = holdReplies();
    first.close();
    expect(replies).toEqual([]);
  });

  test('makes a drain unknown for a request that is granted the key too late', () => {
    const { other, first, holdReplies } = startResponding();
    const waited = recorder();
    const second = other.makeClaim(requestFor('order'));
    second.begin(waited, 100);
    const held = holdReplies();
    first.release({ kind: 'answered', isFinal: true, isDelivered: true });
    second.stopWaiting();
    for (const reply of held) other.onReply(reply);
    expect(waited.results).toEqual([['refused', 'draining', true]]);
  });
});

describe('when a process ends', () => {
  test('the writes that a worker was granted, or may not have delivered, are unresolved', () => {
    const { server, startWorker, clock } = startProcesses();
    const [one, other] = [startWorker(), startWorker()];
    one.makeClaim(requestFor('granted')).begin(recorder(), 100);
    const cut = one.makeClaim(requestFor('cut'));
    cut.begin(recorder(), 100);
    cut.onSend('e1');
    cut.recordOutcome('answered');
    cut.release({ kind: 'answered', isFinal: true, isDelivered: true });
    const delivered = one.makeClaim(requestFor('delivered'));
    delivered.begin(recorder(), 100);
    delivered.onSend('e1');
    delivered.recordOutcome('answered');
    delivered.release({ kind: 'answered', isFinal: true, isDelivered: true });
    delivered.close();
    const waiting = recorder();
    other.makeClaim(requestFor('granted')).begin(waiting, 100);
    expect(waiting.results).toEqual([]);
    clock.time = 5;
    server.leave(0);
    expect(waiting.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    const results = ['cut', 'delivered'].map((name) => {
      const listener = recorder();
      other.makeClaim(requestFor(name)).begin(listener, 100);
      return listener.results[0];
    });
    expect(results).toEqual([
      ['claimed', { firstSentAt: 0, isAnswered: false }],
      ['claimed', { firstSentAt: 0, isAnswered: true, isFinal: true }],
    ]);
  });

  test('the open writes without a key of a worker are reported as interrupted', () => {
    const { server, startWorker, logged } = startProcesses();
    const [one, other] = [startWorker(), startWorker()];
    const write = { route: '/', upstream: 'up', method: 'POST', sentAt: 1 };
    for (const requestId of ['a', 'b']) one.onSent({ requestId, ...write });
    other.onSent({ requestId: 'c', ...write });
    one.onEnd('a');
    server.leave(0);
    expect(logged).toEqual(['sent a', 'sent b', 'sent c', 'end a', 'interrupted b', 'end b']);
  });

  test('the keys of a primary are refused or unresolved in its workers', () => {
    const { startWorker, holdReplies, operations } = startProcesses();
    const worker = startWorker();
    const held = worker.makeClaim(requestFor('held'));
    held.begin(recorder(), 100);
    held.onSend('e1');
    holdReplies();
    const waiting = recorder();
    worker.makeClaim(requestFor('waiting')).begin(waiting, 100);
    const found: boolean[] = [];
    worker.findUnresolved('up', ['other'], (isUnresolved) => found.push(isUnresolved));
    worker.onKeeperGone();
    worker.findUnresolved('up', ['other'], (isUnresolved) => found.push(isUnresolved));
    const late = recorder();
    worker.makeClaim(requestFor('late')).begin(late, 100);
    expect([waiting.results, late.results, found]).toEqual([
      [['refused', 'draining', true]],
      [['refused', 'draining', true]],
      [true, true],
    ]);
    const sent = operations.length;
    const known: unknown[] = [];
    held.lookUp((record) => known.push(record));
    held.release({ kind: 'other' });
    expect([known, operations.length]).toEqual([[{ firstSentAt: 0, isAnswered: false }], sent]);
  });
});

describe('a write whose first attempt did nothing at its endpoint', () => {
  test.each(['loses its primary', 'gets no reply'] as const)('is bound to the second one if it %s', (way) => {
    const { startWorker, timers, holdReplies } = startProcesses();
    const worker = startWorker();
    const claim = worker.makeClaim(requestFor('order', { endpoint: undefined }));
    claim.begin(recorder(), 100);
    claim.onSend('e1');
    claim.recordOutcome('not_processed');
    const known: unknown[] = [];
    claim.lookUp((record) => known.push(record, claim.endpoint));
    claim.onSend('e2');
    claim.recordOutcome('may_have_taken_effect');
    const late = holdReplies();
    if (way === 'loses its primary') worker.onKeeperGone();
    claim.lookUp((record) => known.push(record, claim.endpoint));
    if (way === 'gets no reply') for (const run of timers.splice(0)) run();
    const unresolved = { firstSentAt: 0, isAnswered: false };
    expect(known).toEqual([undefined, undefined, unresolved, 'e2']);
    for (const reply of late) worker.onReply(reply);
    expect(claim.endpoint).toBe('e2');
  });

  test('is bound to the endpoint of an attempt that follows a look-up without a reply', () => {
    const { startWorker, timers, holdReplies } = startProcesses();
    const worker = startWorker();
    const claim = worker.makeClaim(requestFor('order', { endpoint: undefined }));
    claim.begin(recorder(), 100);
    claim.onSend('e1');
    claim.recordOutcome('not_processed');
    const late = holdReplies();
    claim.lookUp(() => undefined);
    for (const run of timers.splice(0)) run();
    expect(claim.endpoint).toBe('e1');
    claim.onSend('e1');
    for (const reply of late) worker.onReply(reply); // it says that the endpoint is free
    expect(claim.endpoint).toBe('e1');
  });
});

describe('a primary that does not reply', () => {
  test('has its claims refused after their deadline, and its look-ups count as unresolved', () => {
    const timers: { delay: number; run: () => void }[] = [];
    const sent: string[] = [];
    const client = new KeyClient({
      clock: { now: () => 0 },
      send: (operations) => sent.push(...operations.map((each) => each.do)),
      schedule: (run) => run(),
      after: (delay, run) => {
        const timer = { delay, run };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      },
    });
    const [lost, minted] = [recorder(), recorder()];
    const found: boolean[] = [];
    client.makeClaim(requestFor('order')).begin(lost, 100);
    client.makeClaim(requestFor('minted', { isNew: true })).begin(minted, 100);
    client.findUnresolved('up', ['order'], (isUnresolved) => found.push(isUnresolved));
    expect(timers.map(({ delay }) => delay)).toEqual([1100, 1100, 1000]);
    for (const { run } of timers.splice(0)) run();
    expect([lost.results, minted.results, found]).toEqual([
      [['refused', 'key_store_lost', true]],
      [['refused', 'key_store_lost', false]],
      [true],
    ]);
    // The primary may grant it later.
    expect(sent.filter((each) => each === 'release')).toHaveLength(2);
    const granted = recorder();
    const claim = client.makeClaim(requestFor('another', { endpoint: undefined }));
    claim.begin(granted, 100);
    client.onReply({ type: 'claimed', claim: 4, record: undefined, endpoint: undefined, hasWaited: false });
    claim.onSend('e1');
    const known: unknown[] = [];
    claim.lookUp((record) => known.push(record));
    for (const { run } of timers.splice(0)) run();
    client.onReply({ type: 'known', claim: 4, record: undefined, endpoint: undefined });
    expect([granted.results, known]).toEqual([[['claimed', undefined]], [{ firstSentAt: 0, isAnswered: false }]]);
  });
});

test('an endpoint where nothing took effect is dropped before the write is sent to another endpoint', () => {
  const { server, startWorker } = startProcesses();
  const [one, other] = [startWorker(), startWorker()];
  const claim = one.makeClaim(requestFor('order', { endpoint: undefined }));
  claim.begin(recorder(), 100);
  claim.onSend('e1');
  claim.recordOutcome('not_processed');
  const known: unknown[] = [];
  claim.lookUp((record) => known.push(record));
  expect(known).toEqual([undefined]);
  server.leave(0);
  const repeat = other.makeClaim(requestFor('order', { endpoint: undefined }));
  repeat.begin(recorder(), 100);
  expect(repeat.endpoint).toBe('');
});
