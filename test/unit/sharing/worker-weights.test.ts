import { expect, test } from 'vitest';
import { WorkerAccounts } from '../../../src/sharing/workers/worker-accounts.ts';

test('the weight of clients that will return counts for 5 s after its report, that of waiting ones as long as they wait', () => {
  const accounts = new WorkerAccounts();
  const [idle, busy] = [accounts.open(1, 0, 0), accounts.open(2, 0, 0)];
  accounts.updateDemand({ want: 0, received: 0, weight: 4, groups: {} }, idle, 0);
  accounts.updateDemand({ want: 2, received: 0, weight: 3, groups: {} }, busy, 0);
  expect([accounts.activeWeight, accounts.demandWeight(4999)]).toEqual([3, 7]);
  expect(accounts.demandWeight(5000)).toBe(3);
  accounts.updateDemand({ want: 0, received: 0, weight: 0, groups: {} }, busy, 5000);
  expect(accounts.demandWeight(5000)).toBe(0);
});
