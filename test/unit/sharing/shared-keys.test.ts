import { describe, expect, test } from 'vitest';
import type { KeyClaim, KeyClaimListener, KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';
import { FallbackKeyStore } from '../../../src/sharing/keys/fallback-key-store.ts';
import { KeyClient } from '../../../src/sharing/keys/key-client.ts';
import type {
  KeyStateBackend,
  NameChange,
  RenewedLeases,
  StoredName,
  SwapResult,
} from '../../../src/sharing/keys/key-state-backend.ts';
import { NO_VERSION } from '../../../src/sharing/keys/key-state-backend.ts';
import { SharedKeys } from '../../../src/sharing/keys/shared-keys.ts';

const LEASE = 1000;

function requestFor(name: string, more: Partial<KeyClaimRequest> = {}): KeyClaimRequest {
  const identity = { upstream: 'up', name, credential: 1, owner: 1, credentialHeader: 'authorization', body: 1 };
  return {
    identity,
    place: { fairnessKey: 'a', client: 'a' },
    concurrent: 'wait',
    ttl: 60_000,
    ...{ endpoint: 'e1', onStoreLost: 'refuse' },
    ...more,
  };
}

interface Row {
  readonly version: string;
  readonly state: string;
  /** When the lease of each owner ends. */
  readonly leases: Map<string, number>;
  readonly unresolved: boolean;
}

/** Replicas and their store, which answers at once, in order. */
function startReplicas() {
  const timers: { at: number; run: () => void }[] = [];
  const clock = { time: 0, now: () => clock.time };
  const rows = new Map<string, Row>();
  const forgets = new Map<string, number>();
  const calls: string[] = [];
  /** Names of changes that others have to know. */
  const announced: string[] = [];
  /** How the next calls fail. `late`: carried out, without a response; `held`: the same, but later. */
  const faults: ('unsent' | 'late' | 'held')[] = [];
  const held: (() => unknown)[] = [];
  const read = (name: string): StoredName => {
    const row = rows.get(name);
    const times = { forgets: forgets.get(name) ?? 0 };
    // A name that was forgotten keeps a version.
    const version = times.forgets === 0 ? NO_VERSION : `forgotten ${times.forgets}`;
    if (row === undefined) return { version, state: undefined, gone: new Set(), ...times };
    const gone = [...row.leases].filter(([, ends]) => ends <= clock.time).map(([owner]) => owner);
    const state = JSON.parse(row.state) as StoredName['state'];
    return { version: row.version, state, gone: new Set(gone), ...times };
  };
  const forget = (name: string): void => {
    rows.delete(name);
    forgets.set(name, (forgets.get(name) ?? 0) + 1);
  };
  const swap = (owner: string, name: string, change: NameChange): SwapResult => {
    const found = read(name);
    if (found.version !== change.expected) return { kind: 'changed', found };
    const { state, next: version, owners, unresolvedOwner } = change;
    const unresolved = unresolvedOwner !== undefined;
    const before = rows.get(name)?.leases;
    const ends = (each: string): number => (each === owner ? clock.time + LEASE : (before?.get(each) ?? 0));
    const leases = new Map([...owners].map((each) => [each, ends(each)]));
    if (change.isNews) announced.push(name);
    if (state === undefined) rows.delete(name);
    else rows.set(name, { version, state: JSON.stringify(state), leases, unresolved });
    return { kind: 'stored' };
  };
  let pending: (() => void)[] = [];
  const start = (owner: string) => {
    const call = <T>(
      what: string,
      lost: (isUnsent: boolean) => T,
      carryOut: () => T,
      onResult: (r: T) => void,
    ): void => {
      calls.push(`${owner} ${what}`);
      const fault = faults.shift();
      pending.push(() => {
        if (fault === 'held') held.push(carryOut);
        const result = fault === 'unsent' || fault === 'held' ? undefined : carryOut();
        onResult(fault === undefined ? (result as T) : lost(fault === 'unsent'));
      });
    };
    const backend: KeyStateBackend = {
      leaseTime: LEASE,
      read: ({ name }, _awaits, onRead) =>
        call<StoredName | undefined>(
          'read',
          () => undefined,
          () => read(name),
          onRead,
        ),
      swap: ({ name }, change, onSwapped) =>
        call<SwapResult>(
          'swap',
          (isUnsent) => ({ kind: 'lost', isUnsent }),
          () => swap(owner, name, change),
          onSwapped,
        ),
      hasUnresolved: (_upstream, onFound) =>
        call<boolean | undefined>(
          'count',
          () => undefined,
          () => [...rows.values()].some((row) => row.unresolved),
          onFound,
        ),
      renew: (_upstream, names, onRenewed) =>
        call<RenewedLeases | undefined>(
          'renew',
          () => undefined,
          () => {
            const has = (name: string): boolean => rows.get(name)?.leases.has(owner) === true;
            for (const name of names) if (has(name)) rows.get(name)?.leases.set(owner, clock.time + LEASE);
            return { missing: new Set(names.filter((name) => !has(name))) };
          },
          onRenewed,
        ),
    };
    const schedule = (delay: number, run: () => void): (() => void) => {
      const timer = { at: clock.time + delay, run };
      timers.push(timer);
      return () => void (timer.run = () => undefined);
    };
    let onForgotten = (_name: string): void => undefined;
    const shared = new SharedKeys({
      ...{ backend, clock, owner, schedule },
      reply: (reply) => client.onReply(reply),
      onForgotten: (name) => onForgotten(name),
    });
    const client = new KeyClient({
      clock,
      send: (operations) => shared.perform(operations),
      schedule: (run) => run(),
      after: () => () => undefined,
      isLeaseValid: (name) => shared.isLeaseValid(name),
    });
    return {
      client,
      news: (name: string) => shared.onNews('up', name),
      bound: () => shared.bound,
      onForgotten: (run: typeof onForgotten) => {
        onForgotten = run;
      },
    };
  };
  /** Answers all calls. */
  const settle = (): void => {
    while (pending.length > 0) {
      const due = pending;
      pending = [];
      for (const run of due) run();
    }
  };
  /** @param except these renew no lease: they are stopped */
  const advance = (ms: number, stopped = false): void => {
    const end = clock.time + ms;
    for (;;) {
      const due = stopped ? undefined : timers.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      timers.splice(timers.indexOf(due), 1);
      clock.time = Math.max(clock.time, due.at);
      due.run();
      settle();
    }
    clock.time = end;
    settle();
  };
  return { clock, start, settle, advance, calls, announced, faults, held, rows, forget };
}

function recorder(): KeyClaimListener & { readonly results: unknown[] } {
  const results: unknown[] = [];
  return {
    results,
    onClaimed: (record) => results.push(['claimed', record]),
    onClaimRefused: (why, mayHaveTakenEffect) => results.push(['refused', why, mayHaveTakenEffect]),
  };
}

describe('a key that replicas share', () => {
  test('costs one round trip before a write is sent, and two afterwards', () => {
    const { start, settle, calls, rows } = startReplicas();
    const claim = start('one').client.makeClaim(requestFor('order'));
    const listener = recorder();
    claim.begin(listener, 100);
    settle();
    expect([listener.results, calls]).toEqual([[['claimed', undefined]], ['one swap']]);
    claim.onSend('e1');
    claim.recordOutcome('answered');
    claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
    claim.close();
    settle();
    expect(calls).toEqual(['one swap', 'one swap', 'one swap']);
    expect(rows.size).toBe(1);
  });

  test('costs one more round trip before a repeat is sent, at the same replica too', () => {
    const { start, settle, calls } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const perform = (replica: typeof one): void => {
      const claim = replica.client.makeClaim(requestFor('order'));
      claim.begin(recorder(), 100);
      settle();
      calls.push('sent');
      claim.onSend('e1');
      claim.recordOutcome('answered');
      claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
      claim.close();
      settle();
    };
    for (const replica of [one, one, other]) perform(replica);
    const swaps = (name: string, count: number): string[] => Array<string>(count).fill(`${name} swap`);
    expect(calls).toEqual([
      ...[...swaps('one', 1), 'sent', ...swaps('one', 2)],
      ...[...swaps('one', 2), 'sent', ...swaps('one', 2)],
      ...[...swaps('other', 2), 'sent', ...swaps('other', 2)],
    ]);
  });

  test('stays answered if the next request claims it as the last one ends', () => {
    for (const credential of [1, 2]) {
      const { start, settle, rows } = startReplicas();
      const { client } = start('one');
      const claim = client.makeClaim(requestFor('order'));
      claim.begin(recorder(), 100);
      settle();
      claim.onSend('e1');
      claim.recordOutcome('answered');
      claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
      claim.close();
      const request = requestFor('order');
      const next = client.makeClaim({ ...request, identity: { ...request.identity, credential, owner: credential } });
      const listener = recorder();
      next.begin(listener, 100_000); // stored together with that end
      settle();
      expect(listener.results).toMatchObject([['claimed', { isAnswered: true }]]);
      next.close();
      settle();
      expect([...rows.values()]).toMatchObject([{ unresolved: false, leases: new Map() }]);
    }
  });

  test('binds a write to the endpoint of its last attempt while the store does not respond', () => {
    const { start, settle, advance, faults } = startReplicas();
    const claim = start('one').client.makeClaim(requestFor('order', { endpoint: undefined }));
    claim.begin(recorder(), 100);
    settle();
    claim.onSend('e1');
    settle();
    claim.recordOutcome('not_processed');
    const known: unknown[] = [];
    const lookUp = (): void => claim.lookUp((record) => known.push(record, claim.endpoint));
    lookUp();
    settle();
    faults.push('unsent');
    claim.onSend('e2');
    settle();
    claim.recordOutcome('may_have_taken_effect');
    lookUp();
    faults.push('unsent');
    advance(300); // the store is tried again
    expect(known).toEqual([undefined, undefined, { firstSentAt: 0, isAnswered: false }, 'e2']);
  });

  test('is read again before a rejection counts while a response arrives, because an announcement may be lost', () => {
    const { start, settle, advance } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const first = one.client.makeClaim(requestFor('order'));
    first.begin(recorder(), 100_000);
    settle();
    first.recordOutcome('answered');
    first.release({ kind: 'answered', isFinal: true, isDelivered: true });
    settle();
    const second = other.client.makeClaim(requestFor('order'));
    second.begin(recorder(), 100_000);
    settle();
    second.onSend('e1');
    second.recordOutcome('rejected');
    first.onUndelivered();
    first.close();
    settle();
    const known: unknown[] = [];
    second.lookUp((record) => known.push(record));
    advance(10);
    expect(known).toEqual([{ firstSentAt: 0, isAnswered: false }]);
  });

  test('of a write that had no effect leaves no state', () => {
    const { start, settle, rows } = startReplicas();
    const claim = start('one').client.makeClaim(requestFor('order'));
    claim.begin(recorder(), 100);
    settle();
    claim.recordOutcome('rejected');
    claim.release({ kind: 'other' });
    claim.close();
    settle();
    expect(rows.size).toBe(0);
  });

  test('of an unresolved write has no lease once it is released, before the response has ended', () => {
    const { start, settle, rows } = startReplicas();
    const claim = start('one').client.makeClaim(requestFor('order'));
    claim.begin(recorder(), 100);
    settle();
    expect([...(rows.get('order')?.leases.keys() ?? [])]).toEqual(['one']);
    claim.onSend('e1');
    claim.recordOutcome('may_have_taken_effect');
    claim.release({ kind: 'other' });
    settle();
    expect(rows.get('order')?.leases.size).toBe(0);
    claim.close();
    settle();
    expect([rows.get('order')?.unresolved, rows.get('order')?.leases.size]).toEqual([true, 0]);
  });

  test('of a request that was refused needs no call when it ends', () => {
    const { start, settle, calls } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    one.client.makeClaim(requestFor('order')).begin(recorder(), 100);
    settle();
    const refused = other.client.makeClaim(requestFor('order', { concurrent: 'refuse' }));
    refused.begin(recorder(), 100);
    settle();
    calls.length = 0;
    refused.close();
    settle();
    expect(calls).toEqual([]);
  });

  test('that another replica has is waited for, and claimed again after a message or a second', () => {
    for (const way of ['news', 'poll'] as const) {
      const { start, settle, advance } = startReplicas();
      const [one, other] = [start('one'), start('other')];
      const first = one.client.makeClaim(requestFor('order'));
      first.begin(recorder(), 100_000);
      settle();
      const waiting = recorder();
      other.client.makeClaim(requestFor('order')).begin(waiting, 100_000);
      settle();
      expect([waiting.results, other.bound().used > 0]).toEqual([[], true]);
      first.recordOutcome('answered');
      first.release({ kind: 'answered', isFinal: true, isDelivered: true });
      first.close();
      settle();
      if (way === 'news') other.news('order');
      else advance(1000);
      settle();
      expect(waiting.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: true, isFinal: true }]]);
      expect(other.bound().used).toBe(0);
    }
  });

  test('is refused at the deadline of a wait, and when the process stops waiting', () => {
    const { start, settle, advance } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    one.client.makeClaim(requestFor('order')).begin(recorder(), 100_000);
    settle();
    const [late, stopped] = [recorder(), recorder()];
    other.client.makeClaim(requestFor('order')).begin(late, 300);
    const second = other.client.makeClaim(requestFor('order'));
    second.begin(stopped, 100_000);
    settle();
    second.stopWaiting();
    settle();
    expect(stopped.results).toEqual([['refused', 'draining', true]]);
    expect(late.results).toEqual([]);
    advance(300);
    expect(late.results).toEqual([['refused', 'key_in_use', true]]);
  });

  test('is released if its request ended before the grant', () => {
    const { start, settle, advance, rows } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const early = one.client.makeClaim(requestFor('order'));
    early.begin(recorder(), 100);
    early.release({ kind: 'other' });
    early.close();
    settle();
    expect(rows.size).toBe(0);
    // The same if another replica has the key.
    const first = other.client.makeClaim(requestFor('order'));
    first.begin(recorder(), 100_000);
    settle();
    const waiting = one.client.makeClaim(requestFor('order'));
    waiting.begin(recorder(), 100_000);
    settle();
    waiting.release({ kind: 'other' });
    waiting.close();
    settle();
    first.release({ kind: 'other' });
    first.close();
    settle();
    advance(3000);
    expect(rows.size).toBe(0);
  });

  test('of a replica whose lease has expired is unresolved', () => {
    const { start, settle, advance } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const claim = one.client.makeClaim(requestFor('order'));
    claim.begin(recorder(), 100);
    settle();
    advance(LEASE + 1, true);
    const repeat = recorder();
    other.client.makeClaim(requestFor('order')).begin(repeat, 100_000);
    settle();
    expect(repeat.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    // The first replica resumes, and looks up the key before it sends, because another one may have sent the write.
    const known: unknown[] = [];
    claim.lookUp((record) => known.push(record));
    settle();
    expect(known).toEqual([{ firstSentAt: 0, isAnswered: false, isInUse: true }]);
  });

  test('has its lease renewed while its requests last, so that they do not count as ended', () => {
    const { start, settle, advance } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    one.client.makeClaim(requestFor('order')).begin(recorder(), 100);
    settle();
    advance(10 * LEASE);
    const repeat = recorder();
    other.client.makeClaim(requestFor('order', { concurrent: 'refuse' })).begin(repeat, 100_000);
    settle();
    expect(repeat.results).toEqual([['refused', 'key_in_use', true]]);
  });

  test('of a replica that does not know it, but renews leases, is unresolved: at once for that replica, later for others', () => {
    for (const cause of ['older data', 'a late message'] as const) {
      const { start, settle, advance, clock, faults, held, rows } = startReplicas();
      const [one, other] = [start('one'), start('other')];
      const repeat = (by: typeof one): readonly unknown[] => {
        const { results, ...listener } = recorder();
        const claim = by.client.makeClaim(requestFor('order', { concurrent: 'refuse' }));
        claim.begin(listener, 1e6);
        settle();
        claim.recordOutcome('rejected');
        claim.release({ kind: 'other' });
        claim.close();
        settle();
        return results;
      };
      const first = one.client.makeClaim(requestFor('order'));
      if (cause === 'a late message') faults.push('held');
      first.begin(recorder(), 100);
      settle();
      const inProgress = rows.get('order');
      first.recordOutcome('rejected');
      first.release({ kind: 'other' });
      first.close();
      one.client.makeClaim(requestFor('another')).begin(recorder(), 1e6); // so it renews leases
      advance(500);
      expect(rows.has('order')).toBe(false);
      const bring = (): void => {
        const leases = new Map([['one', clock.time + LEASE]]);
        if (inProgress !== undefined) rows.set('order', { ...inProgress, leases });
        for (const carryOut of held) carryOut();
      };
      bring();
      expect(repeat(other)).toEqual([['refused', 'key_in_use', true]]);
      advance(LEASE);
      expect(repeat(other)).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
      rows.delete('order');
      bring();
      expect(repeat(one)).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    }
  });

  test('is granted at the deadline of a wait if the lease of its replica has ended since the last look-up', () => {
    const { start, settle, advance, rows } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    one.client.makeClaim(requestFor('order')).begin(recorder(), 100_000);
    settle();
    const waiting = recorder();
    other.client.makeClaim(requestFor('order')).begin(waiting, 200);
    settle();
    rows.get('order')?.leases.set('one', 100);
    advance(200);
    expect(waiting.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
  });

  test.each(['with', 'after'])(
    'is in use if another replica got it while this one was stopped, and is released %s a send',
    (when) => {
      const { start, settle, advance } = startReplicas();
      const [one, other] = [start('one'), start('other')];
      const claim = one.client.makeClaim(requestFor('order'));
      claim.begin(recorder(), 100);
      settle();
      advance(LEASE + 1, true);
      const theirs = other.client.makeClaim(requestFor('order'));
      theirs.begin(recorder(), 100_000);
      settle();
      const known: unknown[] = [];
      const lookUp = (): void => {
        claim.lookUp((record) => known.push(record));
        settle();
      };
      lookUp();
      theirs.recordOutcome('rejected');
      theirs.release({ kind: 'other' });
      theirs.close();
      settle();
      claim.onSend('e1');
      claim.onSend('e1');
      if (when === 'after') settle();
      lookUp();
      expect(known).toEqual([
        { firstSentAt: 0, isAnswered: false, isInUse: true },
        { firstSentAt: 0, isAnswered: false },
      ]);
      const late = recorder();
      other.client.makeClaim(requestFor('order', { concurrent: 'refuse' })).begin(late, 100_000);
      settle();
      expect(late.results).toEqual([['refused', 'key_in_use', true]]);
    },
  );
  test.each(['whole', 'cut'] as const)(
    'is in use while a repeat at the same replica has it, also after the earlier response has ended: %s',
    (end) => {
      const { start, settle } = startReplicas();
      const { client } = start('one');
      const claim = () => {
        const [made, listener] = [client.makeClaim(requestFor('order', { concurrent: 'refuse' })), recorder()];
        made.begin(listener, 100_000);
        settle();
        return { made, results: listener.results };
      };
      const first = claim().made;
      first.recordOutcome('rejected');
      first.release({ kind: 'other' });
      settle();
      const repeat = claim();
      if (end === 'cut') first.onUndelivered();
      settle();
      first.close();
      settle();
      const third = claim();
      expect([...repeat.results, ...third.results]).toEqual([
        ['claimed', undefined],
        ['refused', 'key_in_use', true],
      ]);
      repeat.made.recordOutcome('answered');
      repeat.made.release({ kind: 'answered', isFinal: true, isDelivered: true });
      repeat.made.close();
      third.made.close();
      settle();
      expect(claim().results).toEqual([['claimed', { firstSentAt: 0, isAnswered: true, isFinal: true }]]);
    },
  );

  test('has the outcome of a request although others counted that as ended, or the store has lost the key', () => {
    for (const loss of ['lease', 'store'] as const) {
      const { start, settle, advance, rows } = startReplicas();
      const [one, other] = [start('one'), start('other')];
      const claim = one.client.makeClaim(requestFor('order'));
      claim.begin(recorder(), 100);
      settle();
      if (loss === 'store') rows.clear();
      else {
        advance(LEASE + 1, true);
        const repeat = other.client.makeClaim(requestFor('order'));
        repeat.begin(recorder(), 100_000);
        settle();
        repeat.recordOutcome('rejected');
        repeat.release({ kind: 'other' });
        repeat.close();
        settle();
      }
      claim.recordOutcome('answered');
      claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
      claim.close();
      settle();
      const later = recorder();
      other.client.makeClaim(requestFor('order')).begin(later, 100_000);
      settle();
      expect(later.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: true, isFinal: true }]]);
    }
  });

  test.each(['look-up', 'news'] as const)('has the outcome of a request after a %s, too', (how) => {
    const { start, settle, advance } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const claim = one.client.makeClaim(requestFor('order'));
    claim.begin(recorder(), 100);
    settle();
    advance(LEASE + 1, true);
    const repeat = other.client.makeClaim(requestFor('order'));
    repeat.begin(recorder(), 100_000);
    settle();
    repeat.recordOutcome('rejected');
    repeat.release({ kind: 'other' });
    repeat.close();
    settle();
    if (how === 'news') one.news('order');
    else claim.lookUp(() => undefined);
    settle();
    claim.onSend('e1');
    claim.recordOutcome('answered');
    claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
    claim.close();
    settle();
    const later = recorder();
    other.client.makeClaim(requestFor('order')).begin(later, 100_000);
    settle();
    expect(later.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: true, isFinal: true }]]);
  });

  test('has the outcome of a request after the store has lost the key, even if the end of another one got no response', () => {
    const { start, settle, advance, faults, rows } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const claim = () => {
      const made = one.client.makeClaim(requestFor('order', { concurrent: 'pass' }));
      made.begin(recorder(), 100_000);
      settle();
      return made;
    };
    const [first, second] = [claim(), claim()];
    rows.clear();
    one.news('order');
    settle();
    faults.push('late');
    second.recordOutcome('may_have_taken_effect');
    second.release({ kind: 'other' });
    second.close();
    settle();
    advance(500);
    first.recordOutcome('answered');
    first.release({ kind: 'answered', isFinal: true, isDelivered: true });
    first.close();
    settle();
    const later = recorder();
    other.client.makeClaim(requestFor('order')).begin(later, 100_000);
    settle();
    expect(later.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: true, isFinal: true }]]);
  });

  test('has an end that was stored without a response, which a later cut does not undo', () => {
    const { start, settle, advance, faults, rows } = startReplicas();
    const one = start('one');
    const claim = one.client.makeClaim(requestFor('order'));
    claim.begin(recorder(), 100);
    settle();
    faults.push('late');
    claim.recordOutcome('rejected');
    claim.release({ kind: 'other' });
    settle();
    expect(rows.size).toBe(0);
    claim.onUndelivered();
    claim.close();
    advance(500);
    expect(rows.size).toBe(0);
  });

  test('that the store loses is stored again by a request in progress, with what that knew of the unresolved write', () => {
    for (const [isTaken, hasNews] of [false, true].flatMap((each) => [[each, false] as const, [each, true] as const])) {
      const { start, settle, rows } = startReplicas();
      const [one, other] = [start('one'), start('other')];
      const fail = (by: typeof one, outcome: 'may_have_taken_effect' | 'rejected') => {
        const claim = by.client.makeClaim(requestFor('order', { concurrent: 'refuse' }));
        const { results, ...listener } = recorder();
        claim.begin(listener, 100);
        settle();
        const end = (): void => {
          claim.recordOutcome(outcome);
          claim.release({ kind: 'other' });
          claim.close();
          settle();
        };
        return { claim, results, end };
      };
      fail(other, 'may_have_taken_effect').end();
      const second = fail(one, 'rejected');
      expect(second.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
      rows.clear();
      if (hasNews) one.news('order');
      settle();
      const others = isTaken ? fail(other, 'rejected') : undefined;
      const known: unknown[] = [];
      second.claim.onSend('e1');
      second.claim.onSend('e1');
      second.claim.lookUp((record) => known.push(record));
      settle();
      expect(known).toEqual([{ firstSentAt: 0, isAnswered: false, ...(isTaken && { isInUse: true }) }]);
      others?.end();
      second.end();
      expect(fail(other, 'rejected').results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    }
  });

  test('that the store loses is granted to no request of the same replica while the first is in progress', () => {
    const { start, settle, advance, rows } = startReplicas();
    const one = start('one');
    const first = one.client.makeClaim(requestFor('order'));
    first.begin(recorder(), 100_000);
    settle();
    first.onSend('e1');
    rows.clear();
    const [second, waiting, refused] = [one.client.makeClaim(requestFor('order')), recorder(), recorder()];
    second.begin(waiting, 100_000);
    one.client.makeClaim(requestFor('order', { concurrent: 'refuse' })).begin(refused, 100_000);
    settle();
    expect([waiting.results, refused.results]).toEqual([[], [['refused', 'key_in_use', true]]]);
    first.recordOutcome('may_have_taken_effect');
    first.release({ kind: 'other' });
    first.close();
    advance(0);
    expect(waiting.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
  });

  test('that the store loses is looked up before the next attempt, after it was stored again for another request', () => {
    const { start, settle, rows, calls } = startReplicas();
    const one = start('one');
    const first = one.client.makeClaim(requestFor('order'));
    first.begin(recorder(), 100_000);
    settle();
    rows.clear();
    one.client.makeClaim(requestFor('order')).begin(recorder(), 100_000);
    settle();
    expect(first.isCurrent).toBe(false);
    calls.length = 0;
    const known: unknown[] = [];
    first.lookUp((record) => known.push(record));
    settle();
    expect([known, calls.length > 0, first.isCurrent]).toEqual([[undefined], true, true]);
  });

  test('that the store loses is stored again at the next renewal of its lease, so that no other replica gets it', () => {
    const { start, settle, advance, rows } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const first = one.client.makeClaim(requestFor('order'));
    first.begin(recorder(), 100_000);
    settle();
    rows.clear();
    advance(LEASE);
    expect([...(rows.get('order')?.leases.keys() ?? [])]).toEqual(['one']);
    const repeat = recorder();
    other.client.makeClaim(requestFor('order', { concurrent: 'refuse' })).begin(repeat, 100_000);
    settle();
    expect(repeat.results).toEqual([['refused', 'key_in_use', true]]);
  });

  test('that the store loses and another replica gets has a lapsed lease from the next renewal on', () => {
    const { start, settle, advance, rows } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const first = one.client.makeClaim(requestFor('order'));
    first.begin(recorder(), 100_000);
    settle();
    rows.clear();
    other.client.makeClaim(requestFor('order')).begin(recorder(), 100_000);
    settle();
    advance(LEASE);
    expect(first.isCurrent).toBe(false);
    const known: unknown[] = [];
    first.lookUp((record) => known.push(record));
    settle();
    expect(known).toEqual([{ firstSentAt: 0, isAnswered: false, isInUse: true }]);
  });

  test('is refused without a response of the store, and released if the claim was stored', () => {
    for (const fault of ['unsent', 'late'] as const) {
      const { start, settle, advance, faults, rows } = startReplicas();
      const [one, other] = [start('one'), start('other')];
      faults.push(fault);
      const [lost, minted] = [recorder(), recorder()];
      one.client.makeClaim(requestFor('order')).begin(lost, 100_000);
      settle();
      expect(lost.results).toEqual([['refused', 'key_store_lost', true]]);
      faults.push(fault);
      one.client.makeClaim(requestFor('minted', { isNew: true })).begin(minted, 100_000);
      settle();
      expect(minted.results).toEqual([['refused', 'key_store_lost', false]]);
      expect(rows.size).toBe(fault === 'late' ? 2 : 0);
      advance(500);
      expect(rows.size).toBe(0);
      const repeat = recorder();
      other.client.makeClaim(requestFor('order')).begin(repeat, 100_000);
      settle();
      expect(repeat.results).toEqual([['claimed', undefined]]);
    }
  });

  test('has an end that the store did not answer stored once, when the store responds again', () => {
    for (const fault of ['unsent', 'late'] as const) {
      const { start, settle, advance, faults, calls } = startReplicas();
      const [one, other] = [start('one'), start('other')];
      const claim = one.client.makeClaim(requestFor('order'));
      claim.begin(recorder(), 100);
      settle();
      faults.push(fault);
      claim.recordOutcome('answered');
      claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
      settle();
      claim.onUndelivered();
      claim.close();
      advance(500);
      calls.length = 0;
      const repeat = recorder();
      other.client.makeClaim(requestFor('order')).begin(repeat, 100_000);
      settle();
      expect(repeat.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
      expect(calls).toEqual(['other swap', 'other swap']);
    }
  });

  describe('to whose write a replica is sending a response', () => {
    const ANSWERED = { firstSentAt: 0, isAnswered: true, isFinal: true };
    const ARRIVING = { ...ANSWERED, isArriving: true };

    function startResponding() {
      const replicas = startReplicas();
      const { start, settle } = replicas;
      const [one, other] = [start('one'), start('other')];
      const first = one.client.makeClaim(requestFor('order'));
      first.begin(recorder(), 100);
      settle();
      first.onSend('e1');
      first.recordOutcome('answered');
      first.release({ kind: 'answered', isFinal: true, isDelivered: true });
      settle();
      const claim = (by: typeof one = other) => {
        const [made, { results, ...listener }] = [by.client.makeClaim(requestFor('order')), recorder()];
        made.begin(listener, 100_000);
        settle();
        return { made, results };
      };
      const lookUp = (made: KeyClaim): unknown[] => {
        const known: unknown[] = [];
        made.lookUp((record) => known.push(record));
        settle();
        return known;
      };
      return { ...replicas, one, other, first, claim, lookUp };
    }

    test('is open for refusals of the others until that has ended', () => {
      const { settle, other, first } = startResponding();
      const found: boolean[] = [];
      const find = (): void => {
        for (const names of [['order'], undefined]) {
          other.client.findUnresolved('up', names, (each) => found.push(each));
        }
        settle();
      };
      find();
      first.close();
      settle();
      find();
      expect(found).toEqual([true, true, false, false]);
    });

    test.each(['one', 'other'] as const)(
      'is known as such to the request of replica %s that has the key, until the end of the response',
      (by) => {
        const { settle, other, first, claim, lookUp, ...replicas } = startResponding();
        const { made, results } = claim({ one: replicas.one, other }[by]);
        expect([results, lookUp(made)]).toEqual([[['claimed', ARRIVING]], [ARRIVING]]);
        replicas.announced.length = 0;
        first.close();
        settle();
        expect(replicas.announced).toEqual(['order']);
        if (by === 'other') other.news('order');
        settle();
        expect(lookUp(made)).toEqual([ANSWERED]);
      },
    );

    test.each([
      ['an end', true, ANSWERED],
      ['a cut', false, { firstSentAt: 0, isAnswered: false }],
    ])('has %s that is known to its other request, although the store did not confirm it', (_, isWhole, record) => {
      const { settle, advance, faults, one, first, claim, lookUp } = startResponding();
      const { made } = claim(one);
      faults.push('late');
      if (isWhole) first.close();
      else first.onUndelivered();
      settle();
      advance(500);
      expect(lookUp(made)).toEqual([record]);
    });

    test('announces no end that nobody waits for', () => {
      const { settle, first, announced } = startResponding();
      announced.length = 0;
      first.close();
      settle();
      expect(announced).toEqual([]);
    });

    test('is unresolved once the lease of that replica has ended', () => {
      const { advance, claim } = startResponding();
      advance(LEASE + 1, true);
      expect(claim().results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    });

    test('makes a drain unknown', () => {
      const { settle, other } = startResponding();
      const { results, ...listener } = recorder();
      const made = other.client.makeClaim(requestFor('order'));
      made.begin(listener, 100_000);
      made.stopWaiting();
      settle();
      expect(results).toEqual([['refused', 'draining', true]]);
    });
  });

  test('counts as unresolved for refusals by others from the grant on, and if the store does not respond', () => {
    const { start, settle, faults } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    const found: boolean[] = [];
    const find = (names?: readonly string[]): void => {
      other.client.findUnresolved('up', names, (isUnresolved) => found.push(isUnresolved));
      settle();
    };
    find(['order']);
    find();
    one.client.makeClaim(requestFor('order')).begin(recorder(), 100);
    settle();
    find(['other', 'order']);
    find(['other']);
    find();
    faults.push('unsent');
    find(['other']);
    find([]);
    expect(found).toEqual([false, false, true, false, true, true, false]);
  });
});

describe('a key whose request waits for a connection', () => {
  function startWaiting(more: Partial<KeyClaimRequest> = {}) {
    const replicas = startReplicas();
    const { start, settle } = replicas;
    const [one, other] = [start('one'), start('other')];
    const claim = one.client.makeClaim(requestFor('order', more));
    claim.begin(recorder(), 100);
    settle();
    const lookUp = (): unknown => {
      const known: unknown[] = [];
      claim.lookUp((record) => known.push(record));
      settle();
      return known[0];
    };
    const claimElsewhere = (concurrent: KeyClaimRequest['concurrent'] = 'refuse') => {
      const [theirs, { results, ...listener }] = [
        other.client.makeClaim(requestFor('order', { concurrent })),
        recorder(),
      ];
      theirs.begin(listener, 100_000);
      settle();
      return { theirs, results };
    };
    lookUp();
    claim.onSend('e1');
    return { ...replicas, claim, lookUp, claimElsewhere };
  }
  const OPEN = { firstSentAt: 0, isAnswered: false };

  test('has to be looked up once its lease may have ended, which renews the lease if nobody else has the key', () => {
    const { advance, claim, lookUp, claimElsewhere, calls } = startWaiting();
    advance(0.9 * LEASE, true);
    expect(claim.isCurrent).toBe(true);
    advance(0.1 * LEASE, true);
    expect(claim.isCurrent).toBe(false);
    calls.length = 0;
    expect([lookUp(), calls, claim.isCurrent]).toEqual([undefined, ['one swap'], true]);
    advance(0.9 * LEASE, true);
    expect([claimElsewhere().results, claim.isCurrent]).toEqual([[['refused', 'key_in_use', true]], true]);
  });

  test('is in use elsewhere if another replica has got it, until that has ended', () => {
    const { settle, advance, claim, lookUp, claimElsewhere } = startWaiting();
    advance(LEASE + 1, true);
    const { theirs, results } = claimElsewhere();
    expect([results, claim.isCurrent]).toEqual([[['claimed', OPEN]], false]);
    expect(lookUp()).toEqual({ ...OPEN, isInUse: true });
    theirs.recordOutcome('answered');
    theirs.release({ kind: 'answered', isFinal: true, isDelivered: true });
    theirs.close();
    settle();
    advance(LEASE + 1, true);
    expect([lookUp(), claim.isCurrent]).toEqual([{ firstSentAt: 0, isAnswered: true, isFinal: true }, true]);
  });

  test('has to be looked up after a renewal that came too late, because that does not say who has the key', () => {
    const { advance, claim, lookUp, claimElsewhere, faults } = startWaiting();
    advance(LEASE + 1, true);
    claimElsewhere();
    advance(LEASE);
    expect(claim.isCurrent).toBe(false);
    faults.push('unsent');
    expect([lookUp(), claim.isCurrent]).toEqual([{ ...OPEN, isInDoubt: true }, false]);
    expect([lookUp(), claim.isCurrent]).toEqual([{ ...OPEN, isInUse: true }, true]);
  });

  test('is in doubt if the store does not respond after the lease may have ended, and not before', () => {
    for (const fault of ['unsent', 'late'] as const) {
      const { advance, claim, lookUp, faults } = startWaiting();
      claim.onSend('e1');
      faults.push(fault, fault);
      expect(lookUp()).toEqual(OPEN);
      advance(LEASE + 1, true);
      faults.push(fault);
      expect([lookUp(), claim.isCurrent]).toEqual([{ ...OPEN, isInDoubt: true }, false]);
    }
  });

  test('that was made for the request needs no lease, because nobody else knows it', () => {
    const { advance, claim, lookUp, calls } = startWaiting({ isNew: true });
    advance(LEASE + 1, true);
    calls.length = 0;
    expect([claim.isCurrent, lookUp(), calls]).toEqual([true, undefined, []]);
  });

  test('with `concurrent: pass` has to be looked up after its lifetime, because others may have sent the write', () => {
    const { advance, claim, lookUp, claimElsewhere } = startWaiting({ concurrent: 'pass', ttl: 5 * LEASE });
    advance(5 * LEASE - 1);
    expect([claimElsewhere('pass').results, claim.isCurrent]).toEqual([[['claimed', OPEN]], true]);
    advance(1);
    expect([claim.isCurrent, lookUp(), claim.isCurrent]).toEqual([false, OPEN, true]);
  });

  test('is not in doubt while a request waits for it, and does not renew a lease that the process does not have', () => {
    const { start, settle, calls } = startReplicas();
    const [one, other] = [start('one'), start('other')];
    one.client.makeClaim(requestFor('order')).begin(recorder(), 100_000);
    settle();
    const waiting = other.client.makeClaim(requestFor('order'));
    waiting.begin(recorder(), 100_000);
    settle();
    calls.length = 0;
    const known: unknown[] = [];
    waiting.lookUp((record) => known.push(record));
    settle();
    expect([known, calls]).toEqual([[OPEN], ['other read']]);
  });
});

describe('a key that an operator has forgotten', () => {
  /** Replica `one` has claimed the key and lost its lease; then the key was forgotten. */
  function setUp() {
    const replicas = startReplicas();
    const { start, settle, advance, forget } = replicas;
    const [one, other] = [start('one'), start('other')];
    const claim = one.client.makeClaim(requestFor('order'));
    claim.begin(recorder(), 100);
    settle();
    advance(LEASE + 1, true);
    forget('order');
    const claimAgain = () => {
      const [again, listener] = [other.client.makeClaim(requestFor('order')), recorder()];
      again.begin(listener, 100_000);
      settle();
      return { again, listener };
    };
    return { ...replicas, one, claim, claimAgain };
  }

  test.each(['at once', 'after news', 'after another request'] as const)(
    'is not stored again by a request that has ended since, whose result is stored %s',
    (when) => {
      const { settle, one, claim, claimAgain, rows } = setUp();
      if (when === 'after news') one.news('order');
      settle();
      const before = when === 'after another request' ? claimAgain() : undefined;
      expect(before?.listener.results ?? []).toEqual(before === undefined ? [] : [['claimed', undefined]]);
      claim.recordOutcome('answered');
      claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
      claim.onUndelivered();
      claim.close();
      settle();
      before?.again.recordOutcome('rejected');
      before?.again.release({ kind: 'other' });
      before?.again.close();
      settle();
      expect(rows.size).toBe(0);
      expect(claimAgain().listener.results).toEqual([['claimed', undefined]]);
    },
  );

  test.each(['answered', 'cut'] as const)('is stored again once a request sends its write: %s', (end) => {
    const { clock, settle, claim, claimAgain, advance } = setUp();
    const known: unknown[] = [];
    claim.lookUp((record) => known.push(record));
    settle();
    expect(known).toEqual([undefined]);
    const at = clock.time;
    claim.onSend('e1');
    settle();
    advance(1);
    claim.recordOutcome('answered');
    claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
    if (end === 'cut') claim.onUndelivered();
    claim.close();
    settle();
    const isAnswered = end === 'answered';
    expect(claimAgain().listener.results).toEqual([
      ['claimed', { firstSentAt: at, isAnswered, ...(isAnswered ? { isFinal: true } : {}) }],
    ]);
  });
});

/** A replica whose keys fall back to its own registry. */
function startOne(maxLocalNames?: number) {
  const replicas = startReplicas();
  const { start, settle, clock } = replicas;
  const one = start('one');
  const local = new RegistryKeyStore(new KeyRegistry(), clock, () => () => undefined);
  const decided: string[] = [];
  const store = new FallbackKeyStore(one.client, local, (upstream) => decided.push(upstream), maxLocalNames);
  one.onForgotten((name) => store.forget(name));
  const begin = (name: string, more: Partial<KeyClaimRequest> = {}) => {
    const claim = store.makeClaim(requestFor(name, { onStoreLost: 'local', ...more }));
    const { results, ...listener } = recorder();
    claim.begin(listener, 100_000);
    settle();
    return { claim, results };
  };
  return { ...replicas, one, store, begin, decided };
}

describe.each(['refuse', 'local'] as const)(
  'after the store has come back empty, with `onStoreLost: %s`',
  (onStoreLost) => {
    const DAY = 86_400_000;
    const answered = { kind: 'answered', isFinal: true, isDelivered: true } as const;

    /** A write of this process, which has ended. */
    function setUp(outcome: 'answered' | 'may_have_taken_effect' | 'rejected', more: Partial<KeyClaimRequest> = {}) {
      const replica = startOne();
      const begin = (others: Partial<KeyClaimRequest> = {}) =>
        replica.begin('order', { onStoreLost, ...more, ...others });
      const end = ({ claim }: ReturnType<typeof begin>, how: typeof outcome): void => {
        claim.onSend('e1');
        claim.recordOutcome(how);
        claim.release(how === 'answered' ? answered : { kind: 'other' });
        claim.close();
        replica.settle();
      };
      end(begin(), outcome);
      return { ...replica, begin, end };
    }

    test('an unresolved write of this process stays so for a repeat, at its endpoint, whatever repeats follow', () => {
      const { begin, end, rows, clock, decided } = setUp('may_have_taken_effect', { endpoint: undefined });
      rows.clear();
      clock.time += 1000;
      for (let i = 0; i < 2; i += 1) {
        const repeat = begin();
        expect(repeat.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
        expect(repeat.claim.endpoint).toBe('e1');
        end(repeat, 'rejected');
      }
      expect(decided).toEqual([]);
    });

    test.each(['answered', 'rejected'] as const)(
      'a write that was %s is new for a repeat, as an evicted one is',
      (outcome) => {
        const { begin, rows } = setUp(outcome);
        rows.clear();
        expect(begin().results).toEqual([['claimed', undefined]]);
      },
    );

    test('a write whose response was cut later is unresolved for a repeat', () => {
      const { begin, rows, settle } = setUp('rejected');
      const { claim } = begin();
      claim.onSend('e1');
      claim.recordOutcome('answered');
      claim.release(answered);
      claim.onUndelivered();
      claim.close();
      settle();
      rows.clear();
      expect(begin().results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    });

    test('a write of this process is known as long as the store would have kept it: a day after its lifetime', () => {
      const { begin, rows, clock } = setUp('may_have_taken_effect');
      rows.clear();
      clock.time = 60_000 + DAY;
      const repeat = begin();
      expect(repeat.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
      repeat.claim.release({ kind: 'other' });
      repeat.claim.close();
      clock.time += 1;
      expect(begin().results).toEqual([['claimed', undefined]]);
    });

    test('a write that only another replica has sent, and that had no effect, is new for a repeat', () => {
      const { start, settle, begin, end } = setUp('rejected', { concurrent: 'pass' });
      const theirs = start('other').client.makeClaim(requestFor('order', { concurrent: 'pass' }));
      theirs.begin(recorder(), 100_000);
      theirs.onSend('e1');
      settle();
      const own = begin();
      expect(own.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
      end(own, 'rejected');
      theirs.recordOutcome('rejected');
      theirs.release({ kind: 'other' });
      theirs.close();
      settle();
      expect(begin().results).toEqual([['claimed', undefined]]);
    });

    test('a write that an operator has forgotten is new for a repeat, and later once more', () => {
      const { forget, begin, end } = setUp('may_have_taken_effect');
      forget('order');
      const repeat = begin();
      expect(repeat.results).toEqual([['claimed', undefined]]);
      end(repeat, 'rejected');
      expect(begin().results).toEqual([['claimed', undefined]]);
    });
  },
);

describe('with `onStoreLost: local`', () => {
  test('a request that this process decides alone is counted once, and a shared one is not', () => {
    const { begin, faults, decided, advance } = startOne();
    const end = ({ claim }: ReturnType<typeof begin>): void => {
      claim.onSend('e1');
      claim.recordOutcome('may_have_taken_effect');
      claim.release({ kind: 'other' });
      claim.close();
    };
    end(begin('shared'));
    expect(decided).toEqual([]);
    faults.push('unsent');
    const lost = begin('order');
    lost.claim.begin(recorder(), 100_000); // before a retry
    end(lost);
    expect(decided).toEqual(['up']);
    advance(500); // the store responds again
    end(begin('order'));
    end(begin('another'));
    advance(500);
    faults.push('unsent');
    expect(begin('strict', { onStoreLost: 'refuse' }).results).toEqual([['refused', 'key_store_lost', true]]);
    expect(decided).toEqual(['up']);
  });

  test('a request whose lease may have ended is decided by this process while the store is lost, and is counted once', () => {
    const { begin, faults, advance, settle, decided } = startOne();
    const { claim } = begin('order');
    claim.onSend('e1');
    advance(LEASE + 1, true);
    const known: unknown[] = [];
    const lookUp = (): void => {
      claim.lookUp((record) => known.push(record, claim.isCurrent));
      settle();
    };
    expect(claim.isCurrent).toBe(false);
    for (let i = 0; i < 2; i += 1) {
      faults.push('unsent');
      lookUp();
    }
    advance(1, true);
    lookUp();
    const open = { firstSentAt: 0, isAnswered: false };
    expect([known, decided]).toEqual([[open, true, open, true, undefined, true], ['up']]);
    advance(LEASE, true);
    expect(claim.isCurrent).toBe(false);
  });

  test('this process has the state of the writes that it shared, once the store is lost', () => {
    for (const [outcome, end, known] of [
      ['answered', { kind: 'answered', isFinal: true, isDelivered: true }, { isAnswered: true, isFinal: true }],
      ['may_have_taken_effect', { kind: 'other' }, { isAnswered: false }],
    ] as const) {
      const { begin, faults, settle, clock } = startOne();
      const { claim } = begin('order');
      claim.onSend('e1');
      claim.recordOutcome(outcome);
      claim.release(end);
      claim.close();
      settle();
      clock.time += 1000;
      faults.push('unsent', 'unsent');
      const repeat = begin('order');
      expect(repeat.results).toEqual([['claimed', { firstSentAt: 0, ...known }]]);
      expect(repeat.claim.endpoint).toBe('e1');
    }
  });

  test('this process has the state that others stored before it last had the key, once the store is lost', () => {
    const { begin, faults, settle, start } = startOne();
    const theirs = start('other').client.makeClaim(requestFor('order'));
    theirs.begin(recorder(), 100);
    settle();
    theirs.recordOutcome('may_have_taken_effect');
    theirs.release({ kind: 'other' });
    theirs.close();
    settle();
    const { claim, results } = begin('order');
    expect(results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    claim.onSend('e1');
    claim.recordOutcome('rejected');
    claim.release({ kind: 'other' });
    claim.close();
    settle();
    faults.push('unsent', 'unsent');
    expect(begin('order').results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
  });

  test('a repeat waits for the request of this process that had the key before the store was lost', () => {
    const { begin, faults, advance } = startOne();
    const { claim } = begin('order');
    claim.onSend('e1');
    faults.push('unsent');
    expect(begin('order', { concurrent: 'refuse' }).results).toEqual([['refused', 'key_in_use', true]]);
    faults.push('unsent');
    const waiting = begin('order');
    expect(waiting.results).toEqual([]);
    claim.recordOutcome('rejected');
    claim.release({ kind: 'other' });
    advance(500);
    expect(waiting.results).toEqual([['claimed', undefined]]);
  });

  test('a repeat waits for the request that began without the store, although the store responds again', () => {
    const { begin, faults, advance, calls, store, decided } = startOne();
    faults.push('unsent');
    const { claim } = begin('order');
    store.makeClaim(requestFor('order', { onStoreLost: 'local' })).close(); // its client left before it began
    claim.onSend('e1');
    advance(500);
    calls.length = 0;
    const waiting = begin('order');
    expect([waiting.results, calls]).toEqual([[], []]);
    claim.recordOutcome('answered');
    claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
    claim.close();
    const arriving = { firstSentAt: 0, isAnswered: true, isFinal: true, isArriving: true };
    expect(waiting.results).toEqual([['claimed', arriving]]);
    waiting.claim.release({ kind: 'other' });
    waiting.claim.close();
    begin('order');
    expect(calls).toEqual(['one swap']);
    expect(decided).toEqual(['up', 'up']);
  });

  test('a request with the key in the store waits for the one that began without the store just before', () => {
    for (const concurrent of ['wait', 'refuse', 'pass'] as const) {
      const { store, faults, settle } = startOne();
      const [first, second] = [recorder(), recorder()];
      const claims = [first, second].map((listener) => {
        const claim = store.makeClaim(requestFor('order', { onStoreLost: 'local', concurrent }));
        claim.begin(listener, 100_000);
        return claim;
      });
      faults.push('unsent'); // of the first call; the second one is carried out
      settle();
      claims[0]?.onSend('e1');
      const sent = { firstSentAt: 0, isAnswered: false };
      const before = { wait: [], refuse: [['refused', 'key_in_use', false]], pass: [['claimed', undefined]] };
      expect([first.results, second.results]).toEqual([[['claimed', undefined]], before[concurrent]]);
      claims[0]?.recordOutcome('may_have_taken_effect');
      const known: unknown[] = [];
      claims[1]?.lookUp((record) => known.push(record));
      settle();
      expect(known).toEqual([concurrent === 'refuse' ? undefined : sent]);
      claims[0]?.release({ kind: 'other' });
      claims[0]?.close();
      settle();
      expect(second.results.at(-1)).toEqual({ ...before, wait: [['claimed', sent]] }[concurrent][0]);
    }
  });

  test('this process has its writes from the time when it refused requests without the store', () => {
    const { begin, faults, settle } = startOne();
    const { claim } = begin('order', { onStoreLost: 'refuse' });
    claim.onSend('e1');
    claim.recordOutcome('may_have_taken_effect');
    claim.release({ kind: 'other' });
    claim.close();
    settle();
    faults.push('unsent', 'unsent');
    const repeat = begin('order');
    expect(repeat.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    expect(repeat.claim.endpoint).toBe('e1');
  });

  test('once the store responds again, the earliest send counts, and the response of either store', () => {
    for (const [outcome, end, isAnswered] of [
      ['answered', { kind: 'answered', isFinal: true, isDelivered: true }, true],
      ['may_have_taken_effect', { kind: 'other' }, false],
    ] as const) {
      const { begin, faults, settle, start, advance, clock } = startOne();
      const theirs = start('other').client.makeClaim(requestFor('order'));
      clock.time = 1000;
      theirs.begin(recorder(), 2000);
      settle();
      theirs.onSend('e1');
      theirs.recordOutcome('may_have_taken_effect');
      theirs.release({ kind: 'other' });
      theirs.close();
      settle();
      clock.time = 9000;
      faults.push('unsent');
      const { claim, results } = begin('order');
      expect(results).toEqual([['claimed', undefined]]);
      claim.onSend('e1');
      claim.recordOutcome(outcome);
      claim.release(end);
      claim.close();
      advance(500);
      const repeat = begin('order');
      expect(repeat.results).toMatchObject([['claimed', { firstSentAt: 1000, isAnswered }]]);
      const known: unknown[] = [];
      repeat.claim.lookUp((record) => known.push(record));
      settle();
      expect(known).toMatchObject([{ firstSentAt: 1000, isAnswered }]);
      repeat.claim.release({ kind: 'other' });
      repeat.claim.close();
      settle();
      faults.push('unsent', 'unsent');
      expect(begin('order').results).toMatchObject([['claimed', { firstSentAt: 1000, isAnswered }]]);
    }
  });

  test('writes of this process without the store keep their endpoint when the store responds again', () => {
    const { begin, faults, advance } = startOne();
    faults.push('unsent');
    const { claim } = begin('order');
    claim.onSend('e1');
    claim.recordOutcome('may_have_taken_effect');
    claim.release({ kind: 'unknown' });
    claim.close();
    advance(500);
    const repeat = begin('order', { endpoint: undefined });
    expect(repeat.results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    expect(repeat.claim.endpoint).toBe('e1');
  });

  test('the state in the store applies to the oldest writes beyond a number of writes without the store', () => {
    const { begin, faults, advance } = startOne(1);
    for (const name of ['first', 'second']) {
      faults.push('unsent');
      const { claim } = begin(name);
      claim.onSend('e1');
      claim.recordOutcome('may_have_taken_effect');
      claim.release({ kind: 'other' });
      claim.close();
    }
    advance(500); // the store responds again
    expect(begin('second').results).toEqual([['claimed', { firstSentAt: 0, isAnswered: false }]]);
    expect(begin('first').results).toEqual([['claimed', undefined]]);
  });

  test('a write that others have resolved does not count as unresolved in this process', () => {
    const { begin, settle, start, store } = startOne();
    const { claim } = begin('order');
    claim.onSend('e1');
    claim.recordOutcome('may_have_taken_effect');
    claim.release({ kind: 'other' });
    claim.close();
    settle();
    const theirs = start('other').client.makeClaim(requestFor('order'));
    theirs.begin(recorder(), 100);
    settle();
    theirs.recordOutcome('answered');
    theirs.release({ kind: 'answered', isFinal: true, isDelivered: true });
    theirs.close();
    settle();
    const found: boolean[] = [];
    store.findUnresolved('up', ['order'], (isUnresolved) => found.push(isUnresolved));
    store.findUnresolved('up', undefined, (isUnresolved) => found.push(isUnresolved));
    settle();
    expect(found).toEqual([false, false]);
  });

  test('a write does not count as unresolved for other clients if each has keys of its own', () => {
    const { settle, start, store, faults } = startOne();
    const { identity } = requestFor('order');
    const by = (keyOwner: number) => ({ keyOwner, keyOwnerKind: 10 });
    const send = (made: KeyClaim): void => {
      made.begin(recorder(), 100);
      settle();
      made.onSend('e1');
      made.recordOutcome('may_have_taken_effect');
      made.release({ kind: 'other' });
      made.close();
      settle();
    };
    send(start('other').client.makeClaim(requestFor('order', { identity: { ...identity, credential: -1, ...by(1) } })));
    const findAs = (...clients: readonly number[]): readonly boolean[][] => {
      const found = clients.map((client) => {
        const each: boolean[] = [];
        store.findUnresolved('up', ['order'], (isUnresolved) => each.push(isUnresolved), by(client));
        return each;
      });
      settle();
      return found;
    };
    expect(findAs(1, 2)).toEqual([[true], [false]]);
    faults.push('unsent');
    const own = { ...identity, credential: -3, ...by(3) };
    send(store.makeClaim(requestFor('order', { identity: own, onStoreLost: 'local' }))); // known to this process alone
    expect(findAs(1, 2, 3)).toEqual([[true], [false], [true]]);
  });

  test('a claim and the repeats of its write continue in this process while the store is lost', () => {
    const { start, settle, faults, calls, clock, advance } = startReplicas();
    const one = start('one');
    const sharedClaims: string[] = [];
    const makeClaim = one.client.makeClaim.bind(one.client);
    one.client.makeClaim = (request) => {
      sharedClaims.push(request.identity.name);
      return makeClaim(request);
    };
    const store = new FallbackKeyStore(
      one.client,
      new RegistryKeyStore(new KeyRegistry(), clock, () => () => undefined),
    );
    const begin = (name: string, onStoreLost: KeyClaimRequest['onStoreLost']) => {
      const claim = store.makeClaim(requestFor(name, { onStoreLost }));
      const { results, ...listener } = recorder();
      claim.begin(listener, 100_000);
      settle();
      return { claim, results };
    };
    faults.push('unsent', 'unsent');
    expect(begin('strict', 'refuse').results).toEqual([['refused', 'key_store_lost', true]]);
    const { claim, results } = begin('order', 'local');
    expect([results, claim.hasWrite, claim.endpoint]).toEqual([[['claimed', undefined]], true, undefined]);
    claim.onSend('e1');
    claim.recordOutcome('may_have_taken_effect');
    expect(claim.endpoint).toBe('e1');
    claim.release({ kind: 'other' });
    claim.close();
    faults.push('unsent');
    const repeat = begin('order', 'local');
    advance(250);
    expect([repeat.results, repeat.claim.endpoint]).toEqual([
      [['claimed', { firstSentAt: 0, isAnswered: false }]],
      'e1',
    ]);
    expect(sharedClaims).toEqual(['strict', 'order', 'order']); // no claims that were not closed
    const found: boolean[] = [];
    store.findUnresolved('up', ['order'], (isUnresolved) => found.push(isUnresolved));
    store.findUnresolved('up', ['another'], (isUnresolved) => found.push(isUnresolved));
    settle();
    expect([found, store.mayHaveUnresolved(), store.bounds.map(({ name }) => name)]).toEqual([
      [true, false],
      true,
      ['unsettled_keys', 'settled_keys'],
    ]);
    expect(begin('another', 'local').results).toEqual([['claimed', undefined]]);
    expect(calls.at(-1)).toBe('one swap');
  });
});
