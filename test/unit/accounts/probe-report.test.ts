import { expect, test } from 'vitest';
import type { AccountNotice } from '../../../src/core/accounts/account-notice.ts';
import { openAccountGate } from '../../support/core/account-gate.ts';

function openSharedGate() {
  const notices: AccountNotice[] = [];
  const sharingHooks = {
    onLimitCreated: () => undefined,
    onLimitForgotten: () => undefined,
    onClientHeld: () => undefined,
    onAccountChanged: (notice: AccountNotice) => void notices.push(notice),
  };
  return { ...openAccountGate(['a'], {}, { sharingHooks, hash: (text) => text }), notices };
}

test('a probe that the gate refuses is not reported, and one that it admits is reported when it is sent', () => {
  const { store, gate, arrive, answer, notices } = openSharedGate();
  for (let now = 0; now < 3; now += 1) answer(arrive(now), now, 401);
  expect(notices).toMatchObject([{ upstream: 'up', account: 'a', quarantine: { probeAt: 30_002 } }]);
  store.applyHold({ client: 'up\0client', until: 70_000 }, 40_000);
  expect(arrive(40_000).admission).toMatchObject({ kind: 'refused', why: 'held' });
  expect(notices).toHaveLength(1);
  const probe = arrive(80_000);
  expect(probe.admission?.kind).toBe('admitted');
  expect(notices).toHaveLength(1);
  gate.onSent(probe, 80_005);
  expect(notices[1]?.quarantine?.probeAt).toBe(110_005);
});

test('a trial of another client is reported when it is sent', () => {
  const { gate, arrive, answer, notices } = openSharedGate();
  for (const client of ['one', 'two', 'three']) answer(arrive(0, undefined, client), 0, 401);
  expect(notices).toMatchObject([{ quarantine: { isCommon: true, clients: [], trialAt: 30_000 } }]);
  const trial = arrive(40_000, undefined, 'four');
  expect(notices).toHaveLength(1);
  gate.onSent(trial, 40_005);
  expect(notices[1]?.quarantine?.trialAt).toBe(70_005);
  answer(arrive(40_010, undefined, 'five'), 40_010, 502);
  expect(notices).toHaveLength(2);
});
