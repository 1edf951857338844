import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parseAdminUrl } from '../../../src/cli/top/admin-url.ts';
import type { FrameOptions, TopSnapshot } from '../../../src/cli/top/draw-frame.ts';
import { drawFrame } from '../../../src/cli/top/draw-frame.ts';
import { COLOURED_STYLE, PLAIN_STYLE } from '../../../src/cli/top/terminal-style.ts';
import { clientOf, nestedOf, statusOf, upstreamOf } from '../../support/admin/status-builders.ts';

const SNAPSHOT: TopSnapshot = {
  status: statusOf({
    upstreams: [
      upstreamOf({ state: 'restoring', rate: 84, sentPerSecond: 80 }),
      upstreamOf({ name: 'ledger', state: 'blocked', blockedBy: 'upstream', blockedCause: 'rejections', queued: 12 }),
    ],
  }),
  clients: {
    total: 300,
    rows: [
      clientOf({ key: 'aaaa', state: 'held', heldUntil: '2026-11-22T03:00:12.000Z', allowance: 0.25 }),
      ...Array.from({ length: 40 }, (_, index) => clientOf({ key: `client-${index}` })),
    ],
  },
  events: Array.from({ length: 20 }, (_, index) => ({
    id: String(index),
    at: '2026-11-22T02:59:00.000Z',
    kind: 'cut' as const,
    upstream: 'payments',
    text: `rate cut from 120/s to ${index}/s`,
  })),
};

function draw(options: Partial<FrameOptions> = {}, snapshot = SNAPSHOT): readonly string[] {
  return drawFrame(snapshot, { width: 120, paint: PLAIN_STYLE, now: Date.parse(SNAPSHOT.status.at), ...options });
}

describe('a frame', () => {
  test('reports an expired certificate in its second line', () => {
    const status = statusOf({ certificates: [{ setting: 'listen.tls.cert', expiresAt: '2026-11-22T02:58:00.000Z' }] });
    expect(draw({}, { ...SNAPSHOT, status })[1]).toBe(
      '■ Certificate of listen.tls.cert expired 2 min ago: clients that verify it cannot connect.',
    );
  });

  test('shows each upstream in a sentence and a row, the most restricted clients, and recent events', () => {
    const text = draw().join('\n');
    expect(text).toContain('● payments: allowed 84/s and rising, sending 80/s, healthy');
    expect(text).toContain('■ ledger: blocked by the upstream: it rejects every request; probing now; 12 waiting');
    expect(text).toMatch(/^payments +● restoring +84\/s +80\/s/m);
    expect(text).toMatch(/^ledger +■ blocked +0\/s /m);
    expect(text).toMatch(/^aaaa +■ held +12 s +25 %/m);
    expect(text).toContain('20 of 300, most restricted first');
    expect(text).toContain('payments: rate cut from 120/s to 0/s');
  });

  test('shows failures, refusals and a spent retry budget in the sentence and the row', () => {
    const failing = upstreamOf({
      sentPerSecond: 20,
      failedPerSecond: 20,
      failedShare: 1,
      refusedPerSecond: 70,
      budgetSpent: true,
      budgetLeft: 0.05,
    });
    const untried = upstreamOf({ name: 'ledger', attempts: 0, failedShare: null });
    const status = statusOf({ upstreams: [failing, untried] });
    const text = draw({ width: 200 }, { ...SNAPSHOT, status }).join('\n');
    expect(text).toContain('■ payments: every attempt fails, sending 20/s, 70/s refused, retry budget spent');
    expect(text).toContain('○ ledger: no limit detected, not tried yet');
    expect(text).toMatch(/^payments +■ open .* 20\/s +70\/s .* spent /m);
  });

  test('has a line for each name of nested limits', () => {
    const nestedLimits = [
      nestedOf({ limits: 12, which: 'charges', state: 'cooldown', rate: 25, queued: 3 }),
      nestedOf({ name: 'class:batch', rate: 20 }),
      nestedOf({ name: 'tenant', scope: 'client', limits: 40, state: 'blocked' }),
    ];
    const text = draw({}, { ...SNAPSHOT, status: statusOf({ upstreams: [upstreamOf({ nestedLimits })] }) }).join('\n');
    expect(text).toContain('● payments, endpoint: 12 limits; charges allowed 25/s, 3 waiting');
    expect(text).toContain('● payments, class batch: allowed 20/s');
    expect(text).toContain(
      '■ payments, tenant: 40 limits, one per client; tightest blocked by the upstream; probing now',
    );
  });

  test.each([
    [80, 24],
    [200, 60],
    [40, 12],
    [30, 5],
  ])('is no larger than a terminal of %i by %i, coloured or not', (width, height) => {
    for (const paint of [PLAIN_STYLE, COLOURED_STYLE]) {
      const lines = draw({ width, height, paint }).map((line) => stripVTControlCharacters(line));
      expect(lines.length).toBeLessThanOrEqual(height);
      expect(Math.max(...lines.map((line) => Array.from(line).length))).toBeLessThanOrEqual(width);
    }
  });

  test('shows every total, and the whole sentence of an upstream, on 80 columns', () => {
    const mostRefused = { key: 'aaaa', name: 'batch', shareOfRefusals: 0.97 };
    const storm = upstreamOf({
      ...{ rate: 16, sentPerSecond: 16, refusedPerSecond: 65 },
      mostRefused: { ...mostRefused, demandPerSecond: 73, sharePerSecond: 5.4, heldUntil: null },
    });
    const lines = draw({ width: 80, height: 24 }, { ...SNAPSHOT, status: statusOf({ upstreams: [storm] }) });
    expect(lines.slice(1, 6)).toEqual([
      'requests 0/s   5xx to clients 0/s   refused 0   unknown 0   recovered 0',
      'client requests in flight 0   p50 to clients –   p99 to clients –',
      '',
      '▲ payments: allowed 16/s, sending 16/s, 65/s refused, 97 % to client batch',
      '  (sends 73/s, its share is 5.4/s)',
    ]);
  });

  test.each([
    [140, 'budget  quota left …'],
    [80, 'waiting …'],
  ])('marks columns that are omitted at a width of %i', (width, end) => {
    const header = draw({ width }).find((line) => line.startsWith('upstream '));
    expect(header).toContain(end);
    expect(draw({ width: 200 }).find((line) => line.startsWith('upstream '))).toMatch(/upstream p50$/);
  });

  test('shows the configured name of a client instead of its hash', () => {
    const clients = { total: 1, rows: [clientOf({ name: 'batch', state: 'backoff' })] };
    expect(draw({}, { ...SNAPSHOT, clients }).join('\n')).toMatch(/^batch +▲ backoff/m);
  });

  test('shows at least three events on a terminal of 80 by 24', () => {
    const lines = draw({ width: 80, height: 24 });
    expect(lines.some((line) => line.includes('aaaa'))).toBe(true);
    expect(lines.filter((line) => line.includes('rate cut')).length).toBeGreaterThanOrEqual(3);
  });

  test('shows that the connection is lost instead of "ready"', () => {
    const text = draw({ lost: 'Connection lost' }).join('\n');
    expect(text).toContain('■ Connection lost');
    expect(text).toMatch(/^Tidegate 0\.1\.0 {2}■ not connected/);
    expect(text).not.toContain('ready');
  });

  test('passes no control sequence from a name to the terminal', () => {
    const name = '\x1b]0;owned\x07\x1b[2J\u009b1m\u202eevil\r\n';
    const events = [{ id: '1', at: SNAPSHOT.status.at, kind: 'cut', upstream: name, text: name } as const];
    const snapshot: TopSnapshot = {
      status: statusOf({ upstreams: [upstreamOf({ name })] }),
      clients: { total: 1, rows: [clientOf({ key: name, upstream: name })] },
      events,
    };
    expect(draw({}, snapshot).join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

test('accepts the admin port in its common spellings', () => {
  for (const text of ['127.0.0.1:9901', 'http://127.0.0.1:9901', 'http://127.0.0.1:9901/', '0.0.0.0:9901']) {
    expect(parseAdminUrl(text)).toEqual({ ok: true, url: 'http://127.0.0.1:9901' });
  }
  expect(parseAdminUrl('9901')).toEqual({ ok: true, url: 'http://127.0.0.1:9901' });
  expect(parseAdminUrl('[::]:9901')).toEqual({ ok: true, url: 'http://[::1]:9901' });
  expect(JSON.stringify(parseAdminUrl('htp://a:1'))).toContain('did you mean http?');
  expect(parseAdminUrl('unix:/run/tidegate.sock')).toMatchObject({ ok: false });
  expect(parseAdminUrl('a b')).toMatchObject({ ok: false });
});
