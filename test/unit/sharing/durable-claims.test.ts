/** Keys that are stored before their writes are sent. */
import { describe, expect, test } from 'vitest';
import type { KeyJournal, StoredWrite } from '../../../src/core/idempotency/key-journal.ts';
import { toStored } from '../../../src/core/idempotency/key-journal.ts';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import type { KeyClaim, KeyClaimListener, KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import type { KeyedWrite } from '../../../src/core/idempotency/keyed-write.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';

/** A process and its disk. State that is not stored when the process ends is lost. */
function startProcess(stored: readonly StoredWrite[] = []) {
  const clock = { time: 0, now: () => clock.time };
  const rows = new Map<KeyedWrite, StoredWrite | undefined>();
  const changed = new Set<KeyedWrite>();
  let waiting: ((isStored: boolean) => void)[] = [];
  const journal: KeyJournal = {
    onChange: (write) => void changed.add(write),
    onSurplus: (writes) => {
      for (const write of writes) changed.add(write);
    },
    whenStored: (run) => void waiting.push(run),
  };
  const commit = (isStored = true): void => {
    if (isStored) for (const write of changed) rows.set(write, toStored(write));
    const due = waiting;
    waiting = [];
    for (const run of due) run(isStored);
  };
  const keys = new KeyRegistry();
  keys.resume(
    stored.map((write, id) => [id + 1, write] as const),
    journal,
  );
  const store = new RegistryKeyStore(keys, clock, () => () => undefined);
  const begin = (more: Partial<KeyClaimRequest> = {}, credential = 1, deadline = 100) => {
    const results: unknown[] = [];
    const listener: KeyClaimListener = {
      onClaimed: (record) => results.push(['claimed', record]),
      onClaimRefused: (why, mayHaveTakenEffect) => results.push(['refused', why, mayHaveTakenEffect]),
    };
    const identity = {
      upstream: 'up',
      name: 'order',
      credential,
      owner: 1,
      credentialHeader: 'authorization',
      body: 7,
    };
    const request: KeyClaimRequest = {
      ...{ identity, place: { fairnessKey: 'a', client: 'a' }, concurrent: 'wait', ttl: 1000 },
      ...{ endpoint: undefined, onStoreLost: 'refuse', ...more },
    };
    const claim = store.makeClaim(request);
    claim.begin(listener, deadline);
    return { claim, results };
  };
  /** The writes that the next process finds. */
  const kept = (): StoredWrite[] => [...rows.values()].filter((row) => row !== undefined);
  return { begin, commit, kept, clock };
}

/** The upstream responds to the write, and the client is being sent the response. */
function answer(claim: KeyClaim): void {
  claim.onSend('a');
  claim.recordOutcome('answered');
  claim.release({ kind: 'answered', isFinal: true, isDelivered: true });
}

function lookUp(claim: KeyClaim): unknown[] {
  const records: unknown[] = [];
  claim.lookUp((record) => records.push(record));
  return records;
}

describe('a request whose claim cannot be stored', () => {
  test('knows that the response, which was being sent when it got the key, has arrived', () => {
    const { begin, commit } = startProcess();
    const first = begin().claim;
    commit();
    const repeat = begin();
    answer(first); // the repeat has the key
    first.close();
    commit(false);
    expect(repeat.results).toEqual([['refused', 'key_store_lost', false]]);
  });

  test('has a plain refusal if it has waited for the key, and an unknown outcome if it has not', () => {
    const { begin, commit } = startProcess();
    const first = begin().claim;
    commit();
    const waited = begin();
    answer(first);
    commit(false);
    expect(waited.results).toEqual([['refused', 'key_store_lost', false]]);
    const late = begin();
    commit(false);
    expect(late.results).toEqual([['refused', 'key_store_lost', true]]);
  });
});

describe('a retry that may go to another endpoint', () => {
  test('is sent once the store no longer names the first endpoint', () => {
    const { begin, commit, kept } = startProcess();
    const { claim } = begin();
    commit();
    expect(kept()).toMatchObject([{ endpoint: '' }]); // nowhere, before it is chosen
    expect(lookUp(claim)).toEqual([undefined]);
    claim.onSend('a');
    commit();
    expect(kept()).toMatchObject([{ endpoint: 'a' }]);
    claim.recordOutcome('not_processed');
    const records = lookUp(claim);
    expect(records).toEqual([]);
    commit();
    expect([records, claim.endpoint, kept()]).toMatchObject([[undefined], undefined, [{ endpoint: '' }]]);
    claim.onSend('b');
    claim.recordOutcome('may_have_taken_effect');
    claim.release({ kind: 'other' });
    commit();
    expect(kept()).toMatchObject([{ state: 'unresolved', endpoint: 'b' }]);
  });

  test('is sent to the first endpoint if the removal of its name cannot be stored', () => {
    const { begin, commit, kept } = startProcess();
    const { claim } = begin();
    commit();
    claim.onSend('a');
    commit();
    claim.recordOutcome('not_processed');
    const records = lookUp(claim);
    commit(false);
    expect([records, claim.endpoint]).toEqual([[{ firstSentAt: 0, isAnswered: false }], 'a']);
    expect(kept()).toMatchObject([{ endpoint: 'a' }]);
  });

  test('with one endpoint, or after an attempt that may have taken effect, needs no commit', () => {
    const { begin, commit } = startProcess();
    const single = begin({ endpoint: 'a' }).claim;
    commit();
    single.onSend('a');
    single.recordOutcome('not_processed');
    expect(lookUp(single)).toEqual([undefined]);
    single.recordOutcome('may_have_taken_effect');
    expect([lookUp(single), single.endpoint]).toEqual([[undefined], 'a']);
  });
});

describe('after the end of the process', () => {
  const ANSWERED = ['claimed', { firstSentAt: 0, isAnswered: true, isFinal: true }];
  const UNRESOLVED = ['claimed', { firstSentAt: 0, isAnswered: false, isFinal: false }];

  /** The state of the write for a credential in the next process. */
  function knownNext(kept: readonly StoredWrite[], credential: number): unknown {
    const { begin, commit } = startProcess(kept);
    const { results } = begin({}, credential);
    commit();
    return results[0];
  }

  test('an attempt with another credential at an answered write is unresolved for that credential', () => {
    const first = startProcess();
    const { claim: done } = first.begin({}, 1);
    first.commit();
    answer(done);
    done.close();
    const { claim: open } = first.begin({}, 2);
    first.commit();
    open.onSend('a');
    first.commit();
    expect(knownNext(first.kept(), 2)).toEqual(UNRESOLVED);
    expect(knownNext(first.kept(), 1)).toEqual(ANSWERED);
  });

  test('a response that another credential has not received is unresolved for that credential', () => {
    const first = startProcess();
    const { claim: done } = first.begin({}, 1);
    first.commit();
    answer(done);
    done.close();
    const { claim: responding } = first.begin({}, 2);
    first.commit();
    answer(responding);
    first.commit();
    expect(knownNext(first.kept(), 2)).toEqual(UNRESOLVED);
    expect(knownNext(first.kept(), 1)).toEqual(ANSWERED);
    responding.close();
    first.commit();
    expect(knownNext(first.kept(), 2)).toEqual(ANSWERED);
  });
});

describe('a claim that is stored too late', () => {
  test('is refused, because no time is left for its write', () => {
    const { begin, commit, clock, kept } = startProcess();
    const { results } = begin();
    clock.time = 100;
    commit();
    expect(results).toEqual([['refused', 'key_store_lost', false]]);
    commit();
    expect(kept()).toEqual([]);
  });

  test('that is refused because it cannot be stored still knows of an earlier attempt', () => {
    const { begin, commit } = startProcess();
    const { claim: first } = begin();
    commit();
    first.onSend('a');
    first.recordOutcome('may_have_taken_effect');
    first.release({ kind: 'unknown' });
    commit();
    const { claim, results } = begin();
    commit(false);
    expect(results).toEqual([['refused', 'key_store_lost', true]]);
    expect(lookUp(claim)).toEqual([{ firstSentAt: 0, isAnswered: false }]);
  });

  test('is granted with `onStoreLost: local` although it cannot be stored, but not after its deadline', () => {
    const { begin, commit, clock } = startProcess();
    const prompt = begin({ onStoreLost: 'local' });
    commit(false);
    expect(prompt.results).toEqual([['claimed', undefined]]);
    prompt.claim.release({ kind: 'other' });
    const late = begin({ onStoreLost: 'local' });
    clock.time = 100;
    commit(false);
    expect(late.results).toEqual([['refused', 'key_store_lost', false]]);
  });
});
