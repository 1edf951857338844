import { expect, test } from 'vitest';
import { MAX_RECENT_REQUESTS, RecentRequests } from '../../../src/telemetry/history/recent-requests.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';

function begin() {
  let now = 0;
  const requests = new RecentRequests(() => now);
  const end = (fields: Partial<RequestRecord> = {}): void => {
    now += 1;
    const record: RequestRecord = {
      ...{ id: `i-${now}`, at: now, route: '/', upstream: 'up', method: 'GET', path: '/', client: 'c', status: 200 },
      ...{ outcome: 'forwarded', reason: undefined, attempts: 1, queueTime: 0, sleepTime: 0, timeToHead: 0, took: 0 },
      ...{ retryAfterSeconds: undefined, isTruncated: false, ...fields },
    };
    requests.listen({ type: 'done', record });
  };
  const refuse = (): void => end({ status: 429, outcome: 'refused', reason: 'over_share', attempts: 0 });
  return { requests, end, refuse };
}

test('keeps failures apart from successes, and lists all of them newest first', () => {
  const { requests, end, refuse } = begin();
  refuse();
  for (let i = 0; i < 3000; i += 1) end();
  refuse();
  const all = requests.recent({ limit: 10_000 });
  expect(all).toHaveLength(MAX_RECENT_REQUESTS.others + 2);
  expect([all[0]?.number, all[1]?.number, all.at(-1)?.number]).toEqual([3002, 3001, 1]);
  expect(requests.recent({ outcome: 'refused', limit: 10 }).map(({ number }) => number)).toEqual([3002, 1]);
  expect(requests.count).toBe(3002);
});

test('limits the number of each', () => {
  const { requests, end, refuse } = begin();
  for (let i = 0; i < 5000; i += 1) {
    end();
    refuse();
  }
  const all = requests.recent({ limit: 10_000 });
  const refused = all.filter(({ record }) => record.outcome === 'refused');
  expect([refused.length, all.length - refused.length]).toEqual([
    MAX_RECENT_REQUESTS.notable,
    MAX_RECENT_REQUESTS.others,
  ]);
});

test('continues a page where the previous one ended, though its last request was evicted', () => {
  const { requests, end, refuse } = begin();
  for (let i = 0; i < 3; i += 1) refuse();
  for (let i = 0; i < 10; i += 1) end();
  const last = requests.recent({ limit: 5 }).at(-1);
  expect(last?.number).toBe(9);
  for (let i = 0; i < 1000; i += 1) end();
  expect(requests.recent({ before: last?.number, limit: 5 }).map(({ number }) => number)).toEqual([3, 2, 1]);
});

test('truncates the long path of a failed request', () => {
  const { requests, end } = begin();
  end({ status: 404, path: `/${'x'.repeat(30_000)}` });
  expect(requests.recent({ limit: 1 })[0]?.record.path.length).toBeLessThan(1000);
});

test('leaves a returned entry unchanged, though others replace it', () => {
  const { requests, end } = begin();
  end({ path: '/first', polls: 3, traceId: 'a' });
  const page = requests.recent({ limit: 1 });
  for (let i = 0; i < 2 * MAX_RECENT_REQUESTS.others; i += 1) end({ path: '/later' });
  expect(page).toMatchObject([{ number: 1, record: { id: 'i-1', path: '/first', polls: 3, traceId: 'a' } }]);
  const later = requests.recent({ limit: MAX_RECENT_REQUESTS.others });
  expect(new Set(later.map(({ record }) => record.path))).toEqual(new Set(['/later']));
  expect(later.every(({ record }) => record.polls === undefined && record.traceId === undefined)).toBe(true);
});
