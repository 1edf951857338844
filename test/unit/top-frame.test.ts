import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { readAdminUrl } from '../../src/cli/top/admin-url.ts';
import type { FrameOptions, Heard } from '../../src/cli/top/draw-frame.ts';
import { drawFrame } from '../../src/cli/top/draw-frame.ts';
import { COLOURED, PLAIN } from '../../src/cli/top/terminal-style.ts';
import { clientOf, nestedOf, statusOf, upstreamOf } from '../support/status.ts';

const HEARD: Heard = {
  status: statusOf({
    upstreams: [
      upstreamOf({ state: 'restoring', rate: 84, sentPerSecond: 80 }),
      upstreamOf({ name: 'ledger', state: 'blocked', blockedBy: 'upstream', queued: 12 }),
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

function draw(options: Partial<FrameOptions> = {}, heard = HEARD): readonly string[] {
  return drawFrame(heard, { width: 120, paint: PLAIN, now: Date.parse(HEARD.status.at), ...options });
}

describe('a frame', () => {
  test('shows upstreams in words and figures, clients by trouble, and what happened', () => {
    const text = draw().join('\n');
    expect(text).toContain('● payments: allowed 84/s and rising, sending 80/s, all well');
    expect(text).toContain('■ ledger: blocked by the upstream; probing now; 12 waiting');
    expect(text).toMatch(/^payments +● restoring +84\/s +80\/s/m);
    expect(text).toMatch(/^ledger +■ blocked +0\/s /m);
    expect(text).toMatch(/^aaaa +■ held +12 s +25 %/m);
    expect(text).toContain('20 of 300, by trouble');
    expect(text).toContain('payments: rate cut from 120/s to 0/s');
  });

  test('has a line for each name of nested limits', () => {
    const nestedLimits = [
      nestedOf({ limits: 12, which: 'charges', state: 'cooldown', rate: 25, queued: 3 }),
      nestedOf({ name: 'class:batch', rate: 20 }),
      nestedOf({ name: 'tenant', scope: 'client', limits: 40, state: 'blocked' }),
    ];
    const text = draw({}, { ...HEARD, status: statusOf({ upstreams: [upstreamOf({ nestedLimits })] }) }).join('\n');
    expect(text).toContain('● payments, endpoint: 12 of them, charges allowed 25/s, 3 waiting');
    expect(text).toContain('● payments, class batch: allowed 20/s');
    expect(text).toContain('■ payments, tenant: 40, one a client, the tightest blocked by the upstream');
  });

  test.each([
    [80, 24],
    [200, 60],
    [40, 12],
    [30, 5],
  ])('is no larger than a terminal of %i by %i, coloured or not', (width, height) => {
    for (const paint of [PLAIN, COLOURED]) {
      const lines = draw({ width, height, paint }).map((line) => stripVTControlCharacters(line));
      expect(lines.length).toBeLessThanOrEqual(height);
      expect(Math.max(...lines.map((line) => Array.from(line).length))).toBeLessThanOrEqual(width);
    }
  });

  test('keeps room for what happened on a terminal of usual size', () => {
    const lines = draw({ width: 80, height: 24 });
    expect(lines.some((line) => line.includes('aaaa'))).toBe(true);
    expect(lines.filter((line) => line.includes('rate cut')).length).toBeGreaterThanOrEqual(3);
  });

  test('says when it is old', () => {
    expect(draw({ lost: 'Connection lost' }).join('\n')).toContain('■ Connection lost');
  });

  test('obeys nothing that a name would have a terminal do', () => {
    const name = '\x1b]0;owned\x07\x1b[2J\u009b1m\u202eevil\r\n';
    const events = [{ id: '1', at: HEARD.status.at, kind: 'cut', upstream: name, text: name } as const];
    const heard: Heard = {
      status: statusOf({ upstreams: [upstreamOf({ name })] }),
      clients: { total: 1, rows: [clientOf({ key: name, upstream: name })] },
      events,
    };
    expect(draw({}, heard).join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

test('the admin port is understood as people write it', () => {
  for (const text of ['127.0.0.1:9901', 'http://127.0.0.1:9901', 'http://127.0.0.1:9901/', '0.0.0.0:9901']) {
    expect(readAdminUrl(text)).toEqual({ ok: true, url: 'http://127.0.0.1:9901' });
  }
  expect(readAdminUrl('[::]:9901')).toEqual({ ok: true, url: 'http://[::1]:9901' });
  expect(JSON.stringify(readAdminUrl('htp://a:1'))).toContain('did you mean http?');
  expect(readAdminUrl('unix:/run/tidegate.sock')).toMatchObject({ ok: false });
  expect(readAdminUrl('a b')).toMatchObject({ ok: false });
});
