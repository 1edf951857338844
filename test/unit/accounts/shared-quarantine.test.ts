/** Several processes share the quarantines of an account. The tests deliver the notices when they choose. */
import { describe, expect, test } from 'vitest';
import { AccountCredential } from '../../../src/core/accounts/account-credential.ts';
import type { AccountNotice, SharedQuarantine } from '../../../src/core/accounts/account-notice.ts';
import { AccountPool } from '../../../src/core/accounts/account-pool.ts';
import type { Account } from '../../../src/core/accounts/account.ts';

const QUARANTINE = { statuses: new Set([401]), after: 3, interval: 30_000, maxInterval: 600_000 };
const ONE = { client: 'one', fairnessKey: 'one' };
const OTHER = { client: 'other', fairnessKey: 'other' };

/** A process, and the notices that it has reported since the last delivery. */
interface Member {
  readonly pool: AccountPool;
  readonly account: Account;
  readonly sent: AccountNotice[];
  /** How long the quarantines lasted that it has reported as ended by another process. */
  readonly returnedAfter: number[];
}

/** @param part of the spread by which it delays its probes, unless it has sent the last one */
function startProcess(value = 'secret', part = 0.5): Member {
  const [sent, returnedAfter]: [AccountNotice[], number[]] = [[], []];
  const accounts = [{ name: 'main', credential: new AccountCredential('Authorization', value) }];
  const pool = new AccountPool(
    { accounts, quarantine: QUARANTINE },
    {
      hash: (text) => `hash of ${text}`,
      random: () => part,
      onChanged: (notice) => void sent.push({ upstream: 'api', ...notice }),
      onReturned: (_, after) => void returnedAfter.push(after),
    },
  );
  const [account] = pool.accounts;
  if (account === undefined) throw new Error('no account');
  return { pool, account, sent, returnedAfter };
}

function receive({ pool }: Member, notices: readonly AccountNotice[], now: number): void {
  for (const notice of notices) pool.applyNotice(notice, now);
}

/** Delivers all notices to all other members, those that the deliveries cause included. Returns their number. */
function deliver(members: readonly Member[], now: number): number {
  let count = 0;
  for (let sender = findSender(members); sender !== undefined; sender = findSender(members)) {
    const notices = sender.sent.splice(0);
    count += notices.length;
    if (count > 100) throw new Error('the processes do not agree');
    for (const each of members) if (each !== sender) receive(each, notices, now);
  }
  return count;
}

function findSender(members: readonly Member[]): Member | undefined {
  return members.find(({ sent }) => sent.length > 0);
}

function rejectThrice({ account }: Member, by = ONE, now = 0): void {
  for (let i = 0; i < 3; i += 1) account.onRejected(by, now, QUARANTINE, now);
}

/** Admits a probe, and sends it. */
function probe({ account }: Member, now: number): void {
  account.beginUse('probe', now);
  account.onUseSent('probe', now);
}

function isExcluded({ account }: Member, client = 'one'): boolean {
  return account.useBy(client, QUARANTINE).probeAt !== Number.NEGATIVE_INFINITY;
}

function noticeOf({ sent }: Member): AccountNotice & { readonly quarantine: SharedQuarantine } {
  const notice = sent.at(-1);
  if (notice?.quarantine === undefined) throw new Error('no quarantine was reported');
  return { ...notice, quarantine: notice.quarantine };
}

describe('an account of several processes', () => {
  test('excludes a client in all of them after its rejections in one', () => {
    const [here, there] = [startProcess(), startProcess()];
    here.account.onRejected(ONE, 0, QUARANTINE, 0);
    expect(here.sent).toEqual([]);
    rejectThrice(here);
    deliver([here, there], 10);
    expect([isExcluded(there), isExcluded(there, 'other')]).toEqual([true, false]);
    expect(there.account.quarantinedSince).toBe(0);
  });

  test('excludes a client at once if another account has served its request', () => {
    const [here, there] = [startProcess(), startProcess()];
    here.account.onProvenInvalid(ONE, 0, QUARANTINE, 10);
    deliver([here, there], 10);
    expect([isExcluded(there), there.account.quarantinedSince]).toEqual([true, 10]);
  });

  test('excludes further clients in all of them', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    rejectThrice(there, OTHER, 10);
    here.account.onProvenInvalid({ client: 'third', fairnessKey: 'third' }, 20, QUARANTINE, 20);
    deliver([here, there], 20);
    const clients = ['one', 'other', 'third'];
    for (const member of [here, there]) expect(clients.every((client) => isExcluded(member, client))).toBe(true);
  });

  test('is in service in all of them, if one has had a request accepted between the rejections of another', () => {
    const [here, there] = [startProcess(), startProcess()];
    for (const at of [10, 20, 30]) here.account.onRejected(ONE, at, QUARANTINE, at);
    there.account.onAccepted(15);
    expect([here.account.isQuarantined, there.account.isQuarantined]).toEqual([true, false]);
    deliver([here, there], 40);
    expect([here.account.isQuarantined, there.account.isQuarantined]).toEqual([false, false]);
  });

  test('is in service in all of them, if one has had a later request accepted than the one that another account has served', () => {
    const [here, there] = [startProcess(), startProcess()];
    here.account.onProvenInvalid(ONE, 10, QUARANTINE, 20);
    there.account.onAccepted(11);
    deliver([here, there], 40);
    expect([here.account.isQuarantined, there.account.isQuarantined]).toEqual([false, false]);
  });

  test('is quarantined by rejections after a request that another process has had accepted', () => {
    const [here, there] = [startProcess(), startProcess()];
    there.account.onAccepted(5);
    for (const at of [10, 20, 30]) here.account.onRejected(ONE, at, QUARANTINE, at);
    deliver([here, there], 40);
    expect([isExcluded(here), isExcluded(there)]).toEqual([true, true]);
  });

  test('is quarantined by the next rejections, if the first of the evidence was sent before a request that was accepted elsewhere', () => {
    const [here, there] = [startProcess(), startProcess()];
    there.account.onAccepted(5);
    for (const by of [OTHER, ONE, ONE]) here.account.onRejected(by, 1, QUARANTINE, 10);
    deliver([here, there], 20);
    expect([here.account.isQuarantined, there.account.isQuarantined]).toEqual([false, false]);
    rejectThrice(here, ONE, 30);
    deliver([here, there], 30);
    expect([isExcluded(here), isExcluded(there)]).toEqual([true, true]);
  });

  test('keeps its quarantine if a request that was sent before its failed probe was accepted elsewhere', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here, ONE, 10);
    deliver([here, there], 10);
    probe(here, 30_010);
    expect(here.account.onRejected(ONE, 30_010, QUARANTINE, 30_100)).toBe('probe-failed');
    expect(there.account.onAccepted(20_000)).toBe('returned'); // the notice of the probe is under way
    deliver([here, there], 30_200);
    expect([isExcluded(here), isExcluded(there)]).toEqual([true, true]);
  });

  test('is the last choice of other clients in all of them, once unrelated clients were rejected in one', () => {
    const [here, there] = [startProcess(), startProcess()];
    here.account.onRejected(ONE, 0, QUARANTINE, 0);
    rejectThrice(here, OTHER, 10);
    deliver([here, there], 10);
    expect(there.account.useBy('third', QUARANTINE).trialAt).toBe(31_510); // 30 s, and half of a spread of 3 s
    there.account.beginUse('trial', 31_510);
    there.account.onUseSent('trial', 31_510);
    deliver([here, there], 31_520);
    expect(here.account.useBy('third', QUARANTINE).trialAt).toBe(63_010);
  });

  test('is the last choice of other clients in all of them, if an unrelated client is rejected later', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    expect(there.account.useBy('third', QUARANTINE).trialAt).toBeUndefined();
    here.account.onRejected(OTHER, 10, QUARANTINE, 10);
    deliver([here, there], 10);
    expect(there.account.useBy('third', QUARANTINE).trialAt).toBeDefined();
  });

  test('is the last choice of other clients, if two processes have rejected one unrelated client each', () => {
    const [here, there] = [startProcess(), startProcess()];
    there.account.onRejected(OTHER, 0, QUARANTINE, 0);
    rejectThrice(here, ONE, 5);
    deliver([here, there], 10);
    for (const { account } of [here, there]) {
      expect(account.isCommonlyRejected).toBe(true);
    }
  });

  test('is probed by one of them, and later by another if that one has no request', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    expect([here.account.probeAt, there.account.probeAt]).toEqual([30_000, 31_500]);
    probe(here, 30_000);
    deliver([here, there], 30_001);
    expect(there.account.probeAt).toBeGreaterThan(60_000);
  });

  test('has its next probe sent by another process than the last', () => {
    const [here, there] = [startProcess(), startProcess('secret', 0.9)];
    rejectThrice(here);
    deliver([here, there], 0);
    for (const [prober, next] of [
      [here, there],
      [there, here],
    ] as const) {
      const at = prober.account.probeAt;
      probe(prober, at);
      expect(prober.account.onRejected(ONE, at, QUARANTINE, at + 100)).toBe('probe-failed');
      deliver([here, there], at + 100);
      expect(next.account.probeAt).toBeLessThan(prober.account.probeAt);
    }
  });

  test('waits twice as long in all of them after a failed probe of any of them', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    probe(here, 30_000);
    expect(here.account.onRejected(ONE, 30_000, QUARANTINE, 30_100)).toBe('probe-failed');
    deliver([here, there], 30_100);
    expect([here.account.probeAt, there.account.probeAt]).toEqual([96_100, 93_100]); // 60 s, and a spread of 6 s
    probe(there, 93_100);
    expect(there.account.onRejected(ONE, 93_100, QUARANTINE, 93_200)).toBe('probe-failed');
    deliver([here, there], 93_200);
    expect([here.account.probeAt, there.account.probeAt]).toEqual([219_200, 225_200]);
  });

  test('doubles the interval once if two of them probe at the same time', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    for (const member of [here, there]) probe(member, 40_000);
    for (const { account } of [here, there]) account.onRejected(ONE, 40_000, QUARANTINE, 40_100);
    deliver([here, there], 40_100);
    rejectThrice(here, OTHER, 50_000);
    expect(noticeOf(here).quarantine.interval).toBe(60_000);
  });

  test('doubles the interval once if the second rejection arrives after the report of the first', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    for (const member of [here, there]) probe(member, 40_000);
    here.account.onRejected(ONE, 40_000, QUARANTINE, 40_100);
    deliver([here, there], 40_200);
    expect(there.account.onRejected(ONE, 40_000, QUARANTINE, 40_300)).toBeUndefined();
    expect(there.account.shared(QUARANTINE).quarantine?.interval).toBe(60_000);
  });

  test('reports a probe when it is sent, because an admitted one may be refused', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    here.account.beginUse('probe', 30_000);
    rejectThrice(here, OTHER, 30_001);
    deliver([here, there], 30_001);
    expect([here.account.probeAt, there.account.probeAt]).toEqual([60_000, 31_500]);
  });

  test('returns in all of them although one excludes a further client more often than the upstream takes to respond', () => {
    const [here, there] = [startProcess(), startProcess()];
    const returnedAt: number[] = [];
    for (let now = 0; now <= 1000; now += 100) {
      here.account.onProvenInvalid({ client: `c${now}`, fairnessKey: 'one' }, now, QUARANTINE, now);
      there.account.onAccepted(now - 300);
      deliver([here, there], now);
      if (!here.account.isQuarantined && !there.account.isQuarantined) returnedAt.push(now);
    }
    expect(returnedAt).toEqual([400, 900]);
  });

  test('returns in all of them with an accepted request in one', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    probe(there, 33_000);
    expect(there.account.onAccepted(33_000)).toBe('returned');
    deliver([here, there], 33_100);
    expect([here.account.isQuarantined, there.account.isQuarantined]).toEqual([false, false]);
  });

  test('is reported as returned by the process that has reported its quarantine, if another one ends it', () => {
    const [here, there, third] = [startProcess(), startProcess(), startProcess()];
    rejectThrice(here, ONE, 10);
    deliver([here, there, third], 10);
    expect(there.account.onAccepted(20)).toBe('returned');
    deliver([here, there, third], 50);
    deliver([here, there, third], 60);
    expect([here, there, third].map(({ returnedAfter }) => returnedAfter)).toEqual([[40], [], []]);
  });

  test('is reported as returned by a process whose failed probe it has reported', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here, ONE, 10);
    deliver([here, there], 10);
    probe(there, 40_000);
    expect(there.account.onRejected(ONE, 40_000, QUARANTINE, 40_000)).toBe('probe-failed');
    here.account.onAccepted(40_010);
    deliver([here, there], 40_020);
    expect(there.returnedAfter).toEqual([40_010]);
  });

  test('is reported as returned once no later evidence replaces the one that another process refutes', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here, ONE, 10);
    here.sent.splice(0); // lost
    there.account.onAccepted(20);
    rejectThrice(there, ONE, 30);
    receive(here, there.sent, 40);
    expect([isExcluded(here), here.returnedAfter]).toEqual([true, []]);
    there.account.onAccepted(35);
    deliver([here, there], 60);
    expect(here.returnedAfter).toEqual([30]);
  });

  test('ignores what is about a credential that it does not have', () => {
    const [here, there] = [startProcess('old'), startProcess('new')];
    rejectThrice(here);
    const [notice] = here.sent;
    if (notice === undefined) throw new Error('no notice');
    expect(there.pool.applyNotice(notice, 0)).toBe(false);
    expect(startProcess('old').pool.applyNotice({ ...notice, account: 'x' }, 0)).toBe(false);
    expect(there.account.isQuarantined).toBe(false);
  });

  test('is reported in service with the old credential when that is replaced, and when it is removed', () => {
    const [here, other] = [startProcess('old'), startProcess('old')];
    for (const each of [here, other]) rejectThrice(each, ONE, 10);
    here.account.rotate(new AccountCredential('Authorization', 'new'));
    other.pool.reconfigure({ accounts: [], quarantine: QUARANTINE });
    for (const { sent } of [here, other]) {
      const [begun, ended] = sent;
      expect(ended).toEqual({ ...begun, acceptedSentAt: undefined, quarantine: undefined });
      expect(sent).toHaveLength(2);
    }
  });

  test('reports nothing when a credential is replaced without a quarantine', () => {
    const here = startProcess('old');
    here.account.onRejected(ONE, 10, QUARANTINE, 10);
    here.account.rotate(new AccountCredential('Authorization', 'new'));
    here.pool.reconfigure({ accounts: [], quarantine: QUARANTINE });
    expect(here.sent).toEqual([]);
  });

  test('forgets what was accepted with the old credential when it is replaced', () => {
    const [here, there] = [startProcess('new'), startProcess('old')];
    there.account.onAccepted(20);
    there.account.onRejected(ONE, 30, QUARANTINE, 30);
    there.account.rotate(new AccountCredential('Authorization', 'new'));
    rejectThrice(here, ONE, 10);
    deliver([here, there], 40);
    expect(isExcluded(there)).toBe(true);
    expect(there.account.onAccepted(25)).toBe('returned');
  });
});

describe('a notice', () => {
  test('suffices for a process that has received none before', () => {
    const [here, late] = [startProcess(), startProcess()];
    rejectThrice(here);
    rejectThrice(here, OTHER, 10);
    probe(here, 30_000);
    receive(late, [noticeOf(here)], 30_010);
    expect([isExcluded(late), isExcluded(late, 'other'), late.account.isCommonlyRejected]).toEqual([true, true, true]);
    expect(late.account.probeAt).toBe(61_500);
  });

  test('has the same effect in any order, and twice', () => {
    const here = startProcess();
    rejectThrice(here);
    probe(here, 30_000);
    here.account.onRejected(ONE, 30_000, QUARANTINE, 30_100);
    rejectThrice(here, OTHER, 30_200);
    const results = [here.sent, here.sent.toReversed(), [...here.sent, ...here.sent]].map((notices) => {
      const there = startProcess();
      receive(there, notices, 30_300);
      return there.account.shared(QUARANTINE);
    });
    for (const result of results) expect(result).toEqual(here.account.shared(QUARANTINE));
  });

  test('of an ended quarantine that arrives late is refuted', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    const late = here.sent.splice(0);
    probe(here, 30_000);
    here.account.onAccepted(30_000);
    deliver([here, there], 30_010);
    receive(there, late, 30_020);
    expect(there.account.isQuarantined).toBe(false);
    expect(there.sent.map(({ acceptedSentAt, quarantine }) => [acceptedSentAt, quarantine])).toEqual([
      [30_000, undefined],
    ]);
  });

  test('of an account in service is answered by a process whose report of a failed probe was lost', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    deliver([here, there], 0);
    probe(here, 30_000);
    here.account.onRejected(ONE, 30_000, QUARANTINE, 30_100);
    here.sent.splice(0); // lost
    expect(there.account.onAccepted(20_000)).toBe('returned');
    deliver([here, there], 30_200);
    expect([isExcluded(here), isExcluded(there)]).toEqual([true, true]);
  });

  test('names the 50 clients that were rejected last', () => {
    const here = startProcess();
    for (let i = 0; i < 60; i += 1) rejectThrice(here, { client: `c${i}`, fairnessKey: 'one' }, i);
    const { clients } = noticeOf(here).quarantine;
    expect([clients.length, clients[0], clients.at(-1)]).toEqual([50, 'c10', 'c59']);
  });

  test.each([
    ['since', Number.NaN],
    ['evidenceSentAt', Number.POSITIVE_INFINITY],
    ['interval', Number.NaN],
    ['probeAt', Number.POSITIVE_INFINITY],
    ['trialAt', Number.NaN],
  ])('is ignored if %s is %d', (field, value) => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here);
    const notice = noticeOf(here);
    receive(there, [{ ...notice, quarantine: { ...notice.quarantine, [field]: value } }], 10);
    expect(there.account.isQuarantined).toBe(false);
  });

  test('has no times in the future, and no longer interval than is configured', () => {
    const [here, there] = [startProcess(), startProcess('secret', 0)];
    rejectThrice(here);
    const notice = noticeOf(here);
    const far = { since: 1e9, evidenceSentAt: 1e9, interval: 1e9, probeAt: 1e9, trialAt: 1e9 };
    receive(there, [{ ...notice, quarantine: { ...notice.quarantine, ...far } }], 10);
    expect(there.account.shared(QUARANTINE).quarantine).toMatchObject({
      ...{ since: 10, evidenceSentAt: 10, interval: 600_000, probeAt: 600_010, trialAt: 30_010 },
    });
  });

  test('has no times more than 30 days ago', () => {
    const [here, there] = [startProcess(), startProcess('secret', 0)];
    rejectThrice(here);
    const notice = noticeOf(here);
    const far = { since: -1e300, evidenceSentAt: -1e300, interval: -1e300, probeAt: -1e300, trialAt: -1e300 };
    receive(there, [{ ...notice, quarantine: { ...notice.quarantine, ...far } }], 10);
    const longAgo = 10 - 30 * 86_400_000;
    expect(there.account.shared(QUARANTINE).quarantine).toMatchObject({
      ...{ since: longAgo, evidenceSentAt: longAgo, interval: 30_000, probeAt: longAgo, trialAt: longAgo },
    });
  });

  test('does not accept a request in the future, nor at no time', () => {
    const [here, there] = [startProcess(), startProcess()];
    rejectThrice(here, ONE, 10);
    for (const acceptedSentAt of [1e9, Number.POSITIVE_INFINITY, Number.NaN]) {
      receive(there, [{ ...noticeOf(here), quarantine: undefined, acceptedSentAt }], 5);
    }
    deliver([here, there], 10);
    expect([isExcluded(here), isExcluded(there)]).toEqual([true, true]);
  });
});

test('processes agree whatever the order in which notices arrive', () => {
  const outcomes = new Set<string | undefined>();
  for (let seed = 1; seed <= 200; seed += 1) {
    let state = seed;
    const next = (below: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    const members = [startProcess(), startProcess(), startProcess()];
    const underway: { readonly to: Member; readonly notice: AccountNotice }[] = [];
    const pick = (): Member => members[next(members.length)] ?? startProcess();
    const collect = (): void => {
      for (const from of members) {
        for (const notice of from.sent.splice(0)) {
          underway.push(...members.filter((to) => to !== from).map((to) => ({ to, notice })));
        }
      }
    };
    for (let now = 0; now < 100_000; now += 1 + next(2000)) {
      const member = pick();
      const sentAt = now - next(200);
      if (next(4) === 0) member.account.onAccepted(sentAt);
      else if (next(5) === 0) probe(member, now);
      else if (next(2) === 0) member.account.onRejected(next(2) === 0 ? ONE : OTHER, sentAt, QUARANTINE, now);
      collect();
      while (underway.length > 0 && next(3) > 0) {
        const [delivery] = underway.splice(next(underway.length), 1);
        if (delivery !== undefined) receive(delivery.to, [delivery.notice], now);
        collect();
      }
    }
    for (let delivery = underway.shift(); delivery !== undefined; delivery = underway.shift()) {
      receive(delivery.to, [delivery.notice], 100_000);
      collect();
    }
    const states = members.map(({ account }) => JSON.stringify([account.isQuarantined, account.isCommonlyRejected]));
    expect(new Set(states).size, `seed ${seed}: ${states.join()}`).toBe(1);
    outcomes.add(states[0]);
  }
  expect(outcomes.size).toBe(3);
});
