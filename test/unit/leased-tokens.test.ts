import { describe, expect, test } from 'vitest';
import type { LimitState } from '../../src/core/events/proxy-events.ts';
import type { Meter } from '../../src/core/limits/meter.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { World } from '../support/policy.ts';

/** Tokens of somebody else's: asked for when they are missed, and supplied when they come. */
class LeaseMeter implements Meter {
  readonly phase: LimitState = 'restoring';
  readonly ceiling = 100;
  readonly places = undefined;
  readonly blockedUntil = undefined;
  readonly quotaLeft = undefined;
  tokens = 0;
  epoch = 0;
  asked = 0;
  /** Tokens that were taken, and their requests neither sent nor given up. */
  onTheirWay = 0;
  inFlight = 0;
  sends = 0;

  rate(): number {
    return 100;
  }

  delay(): Millis {
    if (this.tokens > 0) return 0;
    this.asked += 1;
    return Number.POSITIVE_INFINITY;
  }

  expected(): Millis {
    return this.tokens > 0 ? 0 : 20;
  }

  overdue(): Millis {
    return 0;
  }

  take(): boolean {
    if (this.tokens === 0) throw new Error('took a token that was not there');
    this.tokens -= 1;
    this.onTheirWay += 1;
    return false;
  }

  supply(tokens: number, epoch: number): void {
    if (epoch < this.epoch) return;
    this.epoch = epoch;
    this.tokens += tokens;
  }

  ended(): boolean {
    this.inFlight -= 1;
    return false;
  }

  sent(): number {
    this.sends += 1;
    this.inFlight += 1;
    return this.inFlight;
  }

  giveBack(): void {
    this.onTheirWay -= 1;
  }

  accepted(): void {}
  abandonProbe(): void {}
  remember(): void {}
  rejected(): undefined {}
  failed(): undefined {}

  noteQuota(): boolean {
    return true;
  }

  isQuotaInForce(): boolean {
    return false;
  }

  isQuotaOf(): boolean {
    return true;
  }

  quotaOwner(): undefined {}
  disownQuota(): void {}
  resumeQuota(): void {}

  stop(): void {}
  advance(): void {}
}

function leasing(): { world: World; meter: LeaseMeter; supply: (tokens: number, epoch?: number) => void } {
  const meter = new LeaseMeter();
  const world = new World({ meters: { '': meter } });
  const supply = (tokens: number, epoch = 1): void => {
    meter.supply(tokens, epoch);
    world.gate.supply(world.limit, world.now);
    world.rearm();
  };
  return { world, meter, supply };
}

describe('tokens that come later', () => {
  test('who arrives waits for them, and none is taken before', () => {
    const { world, meter, supply } = leasing();
    const standings = ['a', 'b', 'c'].map((client) => world.arrive({ client }));
    expect(meter.asked).toBeGreaterThan(0);
    world.runUntil(30);
    expect(standings.map(({ told }) => told)).toEqual([undefined, undefined, undefined]);
    supply(2);
    const admitted = () => standings.filter(({ told }) => told?.kind === 'admitted');
    expect(admitted().map(({ at }) => at)).toEqual([30, 30]);
    supply(5);
    expect(admitted()).toHaveLength(3);
    expect(meter.tokens).toBe(4);
  });

  test('those in hand are taken at once', () => {
    const { world, supply } = leasing();
    supply(1);
    expect(world.arrive().told).toEqual({ kind: 'admitted' });
    expect(world.arrive().told).toBeUndefined();
  });

  test('while they are awaited there is no wake but for those whose time is up', () => {
    const { world } = leasing();
    const standing = world.arrive();
    expect(world.gate.nextWake()).toBe(1000);
    world.runUntil(1000);
    expect(standing.told).toMatchObject({ kind: 'refused', why: 'queue_timeout' });
    expect(world.gate.nextWake()).toBeUndefined();
  });

  test('none that comes too late is lost: it is there for the next', () => {
    const { world, supply, meter } = leasing();
    const standing = world.arrive();
    world.runUntil(2000);
    supply(1);
    expect(standing.told?.kind).toBe('refused');
    expect(meter.tokens).toBe(1);
    expect(world.arrive().told).toEqual({ kind: 'admitted' });
  });

  test('the end of a request gives none back, and asks for none', () => {
    const { world, supply, meter } = leasing();
    supply(1);
    const sent = world.arrive();
    const waiting = world.arrive();
    world.send(sent);
    const { asked } = meter;
    world.gate.end(sent.ticket, 10);
    expect([meter.inFlight, meter.asked - asked, waiting.told]).toEqual([0, 0, undefined]);
  });

  test('one that is taken is on its way until its request is sent, or will not be', () => {
    const { world, supply, meter } = leasing();
    supply(3);
    const [sent, cancelled, gone] = [world.arrive(), world.arrive(), world.arrive()];
    expect(meter.onTheirWay).toBe(3);
    world.send(sent);
    expect([meter.onTheirWay, meter.sends]).toEqual([2, 1]);
    world.gate.cancel(cancelled.ticket, 0);
    world.gate.leave(cancelled.ticket); // once is enough
    expect(meter.onTheirWay).toBe(1);
    world.gate.leave(gone.ticket);
    world.gate.leave(sent.ticket);
    expect([meter.onTheirWay, meter.sends]).toEqual([0, 1]);
  });

  test('the epoch is handed on', () => {
    const { world, supply, meter } = leasing();
    const standing = world.arrive();
    supply(1, 7);
    expect([meter.epoch, standing.told?.kind]).toEqual([7, 'admitted']);
    supply(1, 6);
    expect(meter.tokens).toBe(0);
  });
});
