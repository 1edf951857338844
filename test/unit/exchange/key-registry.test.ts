import { describe, expect, test } from 'vitest';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import { isAnsweredFor } from '../../../src/core/idempotency/keyed-write.ts';
import type { WriteIdentity } from '../../../src/core/idempotency/keyed-write.ts';

const DAY = 24 * 60 * 60 * 1000;

const people = ['', 'alice', 'bob', 'token 1', 'token 2', 'token 3'];

/** Without a credential if that is empty. */
function write(name: string, credential = 'alice', body?: string): WriteIdentity {
  const digest = people.includes(credential) ? people.indexOf(credential) : 100 + Number(credential.split(' ')[1]);
  const checksum = body === undefined ? undefined : Buffer.from(body).readUIntBE(0, Math.min(6, body.length));
  return {
    upstream: 'up',
    name,
    credential: credential === '' ? -1 : digest,
    owner: digest,
    credentialHeader: 'authorization',
    body: checksum,
  };
}

/** A request leaves with this state of a write. */
function leave(keys: KeyRegistry, name: string, firstSentAt: number, isAnswered: boolean): void {
  const entered = keys.join(write(name));
  keys.record(entered, { firstSentAt, isAnswered });
  keys.leave(entered);
}

function recall(keys: KeyRegistry, identity: WriteIdentity, now = 0, isTtlKnown = true) {
  const entered = keys.join(identity);
  const record = keys.recall(entered, isTtlKnown ? DAY : undefined, now);
  keys.leave(entered);
  return record;
}

describe('one write', () => {
  test('is recognised by its name and credential, whatever its body', () => {
    const keys = new KeyRegistry();
    expect(keys.join(write('a', 'alice', '1:x'))).toBe(keys.join(write('a', 'alice', '1:y')));
  });

  test('is recognised after a credential refresh by its body, or if its body is unknown', () => {
    const keys = new KeyRegistry();
    const first = keys.join(write('a', 'token 1', '1:x'));
    expect(keys.join(write('a', 'token 2', '1:x'))).toBe(first);
    expect(keys.join(write('a', 'token 3'))).toBe(first);
    expect(keys.join(write('a', '', '1:x'))).not.toBe(first);
  });

  test('is another one if neither is the same, as when two accounts use one key', () => {
    const keys = new KeyRegistry();
    const alice = keys.join(write('a', 'alice', '1:x'));
    const bob = keys.join(write('a', 'bob', '1:y'));
    expect(bob).not.toBe(alice);
    expect(keys.join(write('a', 'bob', '1:x'))).toBe(bob);
    expect(keys.join(write('a', 'alice', '1:y'))).toBe(alice);
  });

  test('has no known body after a second credential has joined it', () => {
    const keys = new KeyRegistry();
    const first = keys.join(write('a', 'token 1', '1:x'));
    keys.join(write('a', 'token 2', '1:x'));
    expect(keys.join(write('a', 'token 3', '1:y'))).toBe(first);
  });

  test('is the one with that body rather than one whose body is unknown', () => {
    const keys = new KeyRegistry();
    const alice = keys.join(write('a', 'alice', '1:x'));
    const bob = keys.join(write('a', 'bob', '1:y'));
    keys.join(write('a', 'token 1', '1:y'));
    expect(bob.body).toBeUndefined();
    expect(keys.join(write('a', 'token 2', '1:x'))).toBe(alice);
  });

  test('without a known body is the oldest unresolved one of its name, or else the newest', () => {
    const keys = new KeyRegistry();
    const alice = keys.join(write('a', 'alice', '1:x'));
    const bob = keys.join(write('a', 'bob', '1:y'));
    for (const body of ['1:x', '1:y']) keys.join(write('a', `token ${body === '1:x' ? 1 : 2}`, body));
    const find = () => keys.join(write('a', 'token 3'));
    expect(find()).toBe(bob);
    keys.onSent(bob, 1);
    expect(find()).toBe(bob);
    keys.onSent(alice, 2);
    expect(find()).toBe(alice);
  });

  test('is found as long as it has requests, whichever others of its name are dropped', () => {
    const identities = [write('a', 'alice', '1:x'), write('a', 'bob', '1:y'), write('a', 'token 1', '1:z')];
    for (const dropped of [0, 1, 2]) {
      const keys = new KeyRegistry();
      const entered = identities.map((identity) => keys.join(identity));
      keys.leave(entered[dropped]!);
      const again = identities.map((identity) => keys.join(identity));
      expect(again.map((each, i) => each === entered[i])).toEqual([0, 1, 2].map((i) => i !== dropped));
    }
  });

  test('is not dropped with an earlier one of its name, whose attempt ends late', () => {
    const keys = new KeyRegistry();
    const early = keys.join(write('a'));
    keys.onSent(early, 1);
    keys.leave(early);
    const late = keys.join(write('a'));
    expect(late).not.toBe(early);
    keys.onAttemptEnd(early);
    expect(keys.join(write('a'))).toBe(late);
  });

  test('joins another one of its name if there are too many, which bounds the search', () => {
    const keys = new KeyRegistry();
    const first = keys.join(write('a', 'user 0', '0-body'));
    for (let i = 1; i < 1000; i += 1) expect(keys.join(write('a', `user ${i}`, `${i}-body`))).not.toBe(first);
    expect(keys.join(write('a', 'user 1000', '1000-body'))).toBe(first);
  });

  test('is never that of another client where each has keys of its own, and has no room if there are too many', () => {
    const keys = new KeyRegistry();
    const of = (n: number) => ({ ...write('a', `user ${n}`, 'body'), keyOwner: n });
    const writes = Array.from({ length: 1000 }, (_, n) => keys.join(of(n)));
    expect(new Set(writes).size).toBe(1000);
    expect([keys.makeRoomFor(of(0)), keys.makeRoomFor(of(999)), keys.makeRoomFor(of(1000))]).toEqual([
      true,
      true,
      false,
    ]);
    expect(writes).not.toContain(keys.join(of(1000)));
    expect(keys.makeRoomFor(write('a', 'user 1001', 'other'))).toBe(true);
  });

  test('has the room of the oldest answered write that is not in use, where each client has keys of its own', () => {
    const keys = new KeyRegistry();
    const of = (n: number) => ({ ...write('a', `user ${n}`, 'body'), keyOwner: n });
    const writes = Array.from({ length: 1000 }, (_, n) => keys.join(of(n)));
    const finish = (n: number, isAnswered: boolean): void => {
      const known = writes[n];
      if (known === undefined) return;
      keys.record(known, { firstSentAt: n, isAnswered });
      keys.leave(known);
    };
    finish(0, false);
    expect(keys.makeRoomFor(of(1000))).toBe(false);
    finish(7, true);
    finish(5, true);
    expect(keys.makeRoomFor(of(5))).toBe(true);
    expect([...keys.writesOf('a')]).toHaveLength(1000);
    expect(keys.makeRoomFor(of(1000))).toBe(true);
    const left = [...keys.writesOf('a')];
    expect([left.length, left.includes(writes[5] as never), left.includes(writes[7] as never)]).toEqual([
      ...[999, false, true],
    ]);
  });

  test('keeps its body when a request joins that may be of another client', () => {
    const keys = new KeyRegistry();
    const known = keys.join(write('a', 'user 0', 'body'));
    expect(keys.join({ ...write('a', 'user 1', 'body'), keyOwner: 1 })).toBe(known);
    expect(keys.join({ ...write('a', 'user 1', 'other'), keyOwner: 1 })).not.toBe(known);
  });

  test('is unresolved while it is in progress and until its outcome is known', () => {
    const keys = new KeyRegistry();
    const entered = keys.join(write('a'));
    const isOpen = () => [keys.isUnresolved('a'), keys.hasUnresolvedAt('up'), keys.hasUnresolved];
    expect(isOpen()).toEqual([false, false, false]);
    keys.onSent(entered, 3);
    expect(isOpen()).toEqual([true, true, true]);
    keys.record(entered, { firstSentAt: 5, isAnswered: false });
    keys.onAttemptEnd(entered);
    keys.leave(entered);
    expect(isOpen()).toEqual([true, true, true]);
    leave(keys, 'a', 9, true);
    expect(isOpen()).toEqual([false, false, false]);
    expect([keys.isUnresolved('b'), keys.hasUnresolvedAt('other')]).toEqual([false, false]);
  });
});

describe('the unresolved writes of an upstream', () => {
  const open = (keys: KeyRegistry, name: string) => {
    const entered = keys.join(write(name));
    keys.record(entered, { firstSentAt: 1, isAnswered: false });
    return entered;
  };

  test('include one whose attempt got no response, although this process did not send it', () => {
    const keys = new KeyRegistry();
    open(keys, 'a');
    expect(keys.hasUnresolvedAt('up')).toBe(true);
  });

  test('include it until the last of them is answered, whichever that is', () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const keys = new KeyRegistry();
      const entered = ['a', 'b'].map((name) => open(keys, name));
      const seen = order.map((i) => {
        keys.record(entered[i]!, { firstSentAt: 1, isAnswered: true });
        return keys.hasUnresolved;
      });
      expect(seen).toEqual([true, false]);
    }
  });

  test('stay the same when a request that was not sent leaves', () => {
    const keys = new KeyRegistry();
    open(keys, 'a');
    keys.leave(keys.join(write('b')));
    expect(keys.hasUnresolved).toBe(true);
  });

  test('exclude one whose attempt ended without having been sent', () => {
    const keys = new KeyRegistry();
    const entered = keys.join(write('a'));
    keys.onSent(entered, 1);
    keys.onAttemptEnd(entered);
    expect(keys.hasUnresolved).toBe(false);
  });

  test('include one whose response was not delivered', () => {
    const keys = new KeyRegistry();
    const entered = keys.join(write('a'));
    keys.record(entered, { firstSentAt: 1, isAnswered: true, isFinal: true });
    expect(keys.hasUnresolved).toBe(false);
    keys.onUndelivered(entered, true);
    expect(keys.hasUnresolved).toBe(true);
  });

  test('exclude one that was evicted, which then is another write', () => {
    const keys = new KeyRegistry(1, 4);
    const evicted = open(keys, 'a');
    keys.leave(evicted);
    const entered = open(keys, 'b');
    keys.record(entered, { firstSentAt: 1, isAnswered: true });
    expect(keys.hasUnresolved).toBe(false);
    expect(keys.join(write('a'))).not.toBe(evicted);
  });
});

describe('the first send of a write', () => {
  test('is the earliest one of its attempts, with its endpoint', () => {
    const keys = new KeyRegistry();
    const entered = keys.join(write('a'));
    keys.onSent(entered, 3, 'first');
    keys.onSent(entered, 9, 'second');
    expect([entered.firstSentAt, entered.endpoint]).toEqual([3, 'first']);
    keys.record(entered, { firstSentAt: 9, isAnswered: false });
    expect(entered.firstSentAt).toBe(3);
    keys.onAttemptEnd(entered);
    keys.onAttemptEnd(entered);
    keys.onSent(entered, 20, 'third');
    expect([entered.firstSentAt, entered.endpoint]).toEqual([3, 'first']);
  });
});

describe('the stored state of a write', () => {
  test('is dropped if the write was left without a send', () => {
    const keys = new KeyRegistry();
    const entered = keys.join(write('a', 'alice', '1:x'));
    keys.leave(entered);
    expect(keys.join(write('a', 'alice', '1:x'))).not.toBe(entered);
  });

  test('has the first send; a response resolves it, and an attempt without one reopens it', () => {
    const keys = new KeyRegistry();
    leave(keys, 'a', 100, false);
    leave(keys, 'a', 900, false);
    expect(recall(keys, write('a'))).toMatchObject({ firstSentAt: 100, isAnswered: false });
    leave(keys, 'a', 950, true);
    expect(recall(keys, write('a'))).toMatchObject({ firstSentAt: 100, isAnswered: true });
    leave(keys, 'a', 980, false);
    expect(recall(keys, write('a'))).toMatchObject({ firstSentAt: 100, isAnswered: false });
  });

  test('stays resolved for a client that received a final response', () => {
    const keys = new KeyRegistry();
    const bob = write('a', 'bob', '1:x');
    const entered = keys.join(write('a', 'alice', '1:x'));
    expect(keys.join(bob)).toBe(entered);
    keys.record(entered, { firstSentAt: 5, isAnswered: true, isFinal: true });
    keys.record(entered, { firstSentAt: 9, isAnswered: false });
    expect([entered.state, isAnsweredFor(entered, bob.credential)]).toEqual(['answered', true]);
    keys.record(entered, { firstSentAt: 9, isAnswered: false }, bob.credential);
    expect([entered.state, isAnsweredFor(entered, bob.credential)]).toEqual(['answered', false]);
    expect(isAnsweredFor(entered, entered.credential)).toBe(true);
    keys.record(entered, { firstSentAt: 9, isAnswered: true, isFinal: true }, bob.credential);
    expect(isAnsweredFor(entered, bob.credential)).toBe(true);
  });

  test('is unresolved again if none of its responses reached a client in full', () => {
    const keys = new KeyRegistry();
    const entered = keys.join(write('a'));
    for (const firstSentAt of [5, 9]) keys.record(entered, { firstSentAt, isAnswered: true, isFinal: true });
    keys.onUndelivered(entered, true);
    expect(recall(keys, write('a'))).toMatchObject({ firstSentAt: 5, isAnswered: true });
    keys.onUndelivered(entered, true);
    expect(recall(keys, write('a'))).toMatchObject({ firstSentAt: 5, isAnswered: false });
    keys.onUndelivered(entered, true);
    expect(recall(keys, write('a'))).toMatchObject({ firstSentAt: 5, isAnswered: false });
  });

  test("of an address beyond its share evicts that address's own entries", () => {
    const keys = new KeyRegistry(4, 4);
    const open = (name: string, credential: string): void => {
      const entered = keys.join(write(name, credential));
      keys.record(entered, { firstSentAt: 1, isAnswered: false });
      keys.leave(entered);
    };
    open('victim', 'alice');
    for (let i = 0; i < 20; i += 1) open(`junk ${i}`, 'bob');
    expect(recall(keys, write('victim', 'alice'))).toBeDefined();
    expect(recall(keys, write('junk 0', 'bob'))).toBeUndefined();
    expect(recall(keys, write('junk 19', 'bob'))).toBeDefined();
  });

  test('is divided among addresses even if these are not credentials', () => {
    const keys = new KeyRegistry(4, 4);
    const from = (name: string, owner: number): WriteIdentity => ({ ...write(name, ''), owner });
    const open = (identity: WriteIdentity): void => {
      const entered = keys.join(identity);
      keys.record(entered, { firstSentAt: 1, isAnswered: false });
      keys.leave(entered);
    };
    open(from('victim', 1));
    for (let i = 0; i < 20; i += 1) open(from(`junk ${i}`, 2));
    expect(recall(keys, from('victim', 3))).toBeDefined();
  });

  test('is unresolved for all after an attempt without a response, if its final response was evicted', () => {
    const keys = new KeyRegistry(4, 1);
    const entered = keys.join(write('a'));
    keys.record(entered, { firstSentAt: 1, isAnswered: true, isFinal: true });
    leave(keys, 'b', 1, true);
    expect(entered.state).toBe('new');
    keys.record(entered, { firstSentAt: 2, isAnswered: false });
    expect(entered.state).toBe('unresolved');
  });

  test('stays new if a response that resolved nothing is not delivered', () => {
    const keys = new KeyRegistry();
    const entered = keys.join(write('a'));
    keys.onUndelivered(entered, false);
    expect(entered.state).toBe('new');
  });

  test('keeps a final response if another one is not delivered, which is unresolved for its own client only', () => {
    const keys = new KeyRegistry();
    const bob = write('a', 'bob');
    const entered = keys.join(write('a'));
    keys.record(entered, { firstSentAt: 1, isAnswered: true, isFinal: true });
    keys.onUndelivered(entered, false);
    expect([entered.state, isAnsweredFor(entered, entered.credential)]).toEqual(['answered', true]);
    keys.onUndelivered(entered, false, bob.credential);
    expect([entered.state, isAnsweredFor(entered, bob.credential)]).toEqual(['answered', false]);
    expect(isAnsweredFor(entered, entered.credential)).toBe(true);
  });

  test('is unresolved for all if it is for more than eight credentials', () => {
    const keys = new KeyRegistry();
    const entered = keys.join(write('a'));
    keys.record(entered, { firstSentAt: 1, isAnswered: true, isFinal: true });
    const states = Array.from({ length: 9 }, (_, i) => {
      keys.record(entered, { firstSentAt: 1, isAnswered: false }, 50 + i);
      return entered.state;
    });
    expect(states).toEqual([...Array.from({ length: 8 }, () => 'answered'), 'unresolved']);
  });

  test('is either unresolved or answered, and takes one place', () => {
    const keys = new KeyRegistry(4, 4);
    const used = () => keys.bounds.slice(1).map((bound) => 4 * bound.used);
    leave(keys, 'a', 1, false);
    expect(used()).toEqual([1, 0]);
    leave(keys, 'a', 1, true);
    expect(used()).toEqual([0, 1]);
    leave(keys, 'a', 1, false);
    expect(used()).toEqual([1, 0]);
    leave(keys, 'b', 1, true);
    leave(keys, 'c', 1, true);
    leave(keys, 'a', 1, true);
    expect(used()).toEqual([0, 3]);
    expect(['a', 'b', 'c'].map((name) => recall(keys, write(name))?.isAnswered)).toEqual([true, true, true]);
  });

  test('keeps its position in the order of eviction when its state is confirmed', () => {
    for (const isAnswered of [true, false]) {
      const keys = new KeyRegistry(2, 2);
      for (const name of ['a', 'b', 'a', 'c']) leave(keys, name, 1, isAnswered);
      expect(['a', 'b', 'c'].map((name) => recall(keys, write(name)) !== undefined)).toEqual([false, true, true]);
    }
  });

  test('of an owner within its share evicts the oldest of all; a share counts only owners with unresolved writes', () => {
    const keys = new KeyRegistry(4, 4);
    const open = (name: string, credential: string, isAnswered = false): void => {
      const entered = keys.join(write(name, credential));
      keys.record(entered, { firstSentAt: 1, isAnswered: false });
      if (isAnswered) keys.record(entered, { firstSentAt: 1, isAnswered: true });
      keys.leave(entered);
    };
    open('x1', 'token 1', true);
    open('b1', 'bob');
    for (const name of ['a1', 'a2']) open(name, 'alice');
    open('b2', 'bob');
    open('a3', 'alice'); // its third: two were its share
    const known = (name: string, credential: string) => recall(keys, write(name, credential)) !== undefined;
    expect([known('b1', 'bob'), known('b2', 'bob')]).toEqual([false, true]);
    expect(['a1', 'a2', 'a3'].map((name) => known(name, 'alice'))).toEqual([true, true, true]);
  });

  test('expires after a day if no key lifetime is known, and otherwise never', () => {
    const keys = new KeyRegistry();
    for (const isAnswered of [false, true]) {
      leave(keys, 'a', 100, isAnswered);
      expect(recall(keys, write('a'), 100 + DAY + 1)).toBeDefined();
      expect(recall(keys, write('a'), 100 + DAY, false)).toBeDefined();
      expect(recall(keys, write('a'), 101 + DAY, false)).toBeUndefined();
      expect(recall(keys, write('a'))).toBeUndefined();
    }
  });

  test('leaves nothing to the write of a request that recalls it when it has expired', () => {
    const keys = new KeyRegistry();
    const first = keys.join(write('a'));
    keys.onResponse(first, first.credential, true);
    keys.record(first, { firstSentAt: 0, isAnswered: true, isFinal: true });
    keys.onResponseEnd(first, first.credential, true);
    keys.leave(first);
    const next = keys.join(write('a'));
    expect(keys.recall(next, undefined, DAY + 1)).toBeUndefined();
    keys.onResponse(next, next.credential, true);
    keys.record(next, { firstSentAt: DAY + 1, isAnswered: true, isFinal: true });
    expect(keys.isUnresolved('a')).toBe(true); // its response is still being sent
    keys.onUndelivered(next, true);
    keys.onResponseEnd(next, next.credential, false);
    keys.leave(next);
    expect(recall(keys, write('a'))).toEqual({ firstSentAt: DAY + 1, isAnswered: false });
  });

  test('is bounded: the oldest is evicted, and no answered write evicts an unresolved one', () => {
    const keys = new KeyRegistry(2, 3);
    for (const name of ['a', 'b', 'c']) leave(keys, name, 1, false);
    for (const name of ['d', 'e', 'f', 'g', 'h']) leave(keys, name, 1, true);
    const known = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].filter((name) => recall(keys, write(name)) !== undefined);
    expect(known).toEqual(['b', 'c', 'f', 'g', 'h']);
    expect(keys.bounds.slice(1)).toEqual([
      { name: 'unsettled_keys', used: 1, reached: 1 },
      { name: 'settled_keys', used: 1, reached: 2 },
    ]);
  });

  test('is bounded even if an evicted write returns', () => {
    const keys = new KeyRegistry(2, 3);
    leave(keys, 'a', 0, true);
    expect(recall(keys, write('a'), DAY + 1, false)).toBeUndefined();
    for (const name of ['b', 'a', 'c']) leave(keys, name, 1, true);
    expect(['a', 'b', 'c'].filter((name) => recall(keys, write(name)) !== undefined)).toEqual(['a', 'b', 'c']);
    expect(keys.bounds[2]).toEqual({ name: 'settled_keys', used: 1, reached: 0 });
  });
});
