import { describe, expect, test } from 'vitest';
import type { LimitState } from '../../../src/core/limits/limit-state.ts';
import type { Meter } from '../../../src/core/limits/meter.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { World } from '../../support/core/world.ts';

/** Tokens of another process: requested when they are missing, and supplied when they arrive. */
class LeaseMeter implements Meter {
  readonly phase: LimitState = 'restoring';
  readonly ceiling = 100;
  readonly concurrencyLimit = undefined;
  readonly blockedUntil = undefined;
  readonly quotaLeft = undefined;
  tokens = 0;
  epoch = 0;
  requested = 0;
  /** Tokens whose requests are neither sent nor abandoned. */
  pendingSends = 0;
  inFlight = 0;
  sendCount = 0;

  rate(): number {
    return 100;
  }

  delay(): Millis {
    if (this.tokens > 0) return 0;
    this.requested += 1;
    return Number.POSITIVE_INFINITY;
  }

  expectedDelay(): Millis {
    return this.tokens > 0 ? 0 : 20;
  }

  awaitsPlace(): boolean {
    return false;
  }

  probeOverdueFor(): Millis {
    return 0;
  }

  take(): boolean {
    if (this.tokens === 0) throw new Error('took a token that was not there');
    this.tokens -= 1;
    this.pendingSends += 1;
    return false;
  }

  supply(tokens: number, epoch: number): void {
    if (epoch < this.epoch) return;
    this.epoch = epoch;
    this.tokens += tokens;
  }

  onResponse(): void {}

  onEnded(): boolean {
    this.inFlight -= 1;
    return false;
  }

  onSent(): number {
    this.sendCount += 1;
    this.inFlight += 1;
    return this.inFlight;
  }

  release(): void {
    this.pendingSends -= 1;
  }

  onAccepted(): undefined {}
  abandonProbe(): void {}
  seedHistory(): void {}
  onRejected(): undefined {}
  onFailed(): undefined {}

  onQuota(): boolean {
    return true;
  }

  isQuotaInForce(): boolean {
    return false;
  }

  quotaAppliesTo(): boolean {
    return true;
  }

  quotaOwner(): undefined {}
  dropQuota(): void {}
  resumeQuota(): void {}

  stop(): void {}
  advance(): void {}
}

function leasing(): { world: World; meter: LeaseMeter; supply: (tokens: number, epoch?: number) => void } {
  const meter = new LeaseMeter();
  const world = new World({ meters: { '': meter } });
  const supply = (tokens: number, epoch = 1): void => {
    meter.supply(tokens, epoch);
    world.gate.onTokensSupplied(world.limit, world.now);
    world.rearm();
  };
  return { world, meter, supply };
}

describe('tokens that are due later', () => {
  test('keep arriving requests waiting, and none is taken before it is due', () => {
    const { world, meter, supply } = leasing();
    const requests = ['a', 'b', 'c'].map((client) => world.arrive({ client }));
    expect(meter.requested).toBeGreaterThan(0);
    world.runUntil(30);
    expect(requests.map(({ admission }) => admission)).toEqual([undefined, undefined, undefined]);
    supply(2);
    const admitted = () => requests.filter(({ admission }) => admission?.kind === 'admitted');
    expect(admitted().map(({ at }) => at)).toEqual([30, 30]);
    supply(5);
    expect(admitted()).toHaveLength(3);
    expect(meter.tokens).toBe(4);
  });

  test('do not delay requests if a token is available', () => {
    const { world, supply } = leasing();
    supply(1);
    expect(world.arrive().admission).toEqual({ kind: 'admitted' });
    expect(world.arrive().admission).toBeUndefined();
  });

  test('need no wake of the gate except for the end of maximum waits', () => {
    const { world } = leasing();
    const request = world.arrive();
    expect(world.gate.nextWake()).toBe(1000);
    world.runUntil(1000);
    expect(request.admission).toMatchObject({ kind: 'refused', why: 'queue_timeout' });
    expect(world.gate.nextWake()).toBeUndefined();
  });

  test('are taken by the next request if the waiting one was refused', () => {
    const { world, supply, meter } = leasing();
    const request = world.arrive();
    world.runUntil(2000);
    supply(1);
    expect(request.admission?.kind).toBe('refused');
    expect(meter.tokens).toBe(1);
    expect(world.arrive().admission).toEqual({ kind: 'admitted' });
  });

  test('are neither returned nor requested at the end of a request', () => {
    const { world, supply, meter } = leasing();
    supply(1);
    const sent = world.arrive();
    const waiting = world.arrive();
    world.send(sent);
    const { requested } = meter;
    world.gate.onAttemptEnd(sent.ticket, 10);
    expect([meter.inFlight, meter.requested - requested, waiting.admission]).toEqual([0, 0, undefined]);
  });

  test('count as in flight from the time they are taken until the request is sent or abandoned', () => {
    const { world, supply, meter } = leasing();
    supply(3);
    const [sent, cancelled, gone] = [world.arrive(), world.arrive(), world.arrive()];
    expect(meter.pendingSends).toBe(3);
    world.send(sent);
    expect([meter.pendingSends, meter.sendCount]).toEqual([2, 1]);
    world.gate.cancel(cancelled.ticket, 0);
    world.gate.onExchangeEnd(cancelled.ticket); // a repeat has no effect
    expect(meter.pendingSends).toBe(1);
    world.gate.onExchangeEnd(gone.ticket);
    world.gate.onExchangeEnd(sent.ticket);
    expect([meter.pendingSends, meter.sendCount]).toEqual([0, 1]);
  });

  test('replace the epoch with theirs, unless it is older', () => {
    const { world, supply, meter } = leasing();
    const request = world.arrive();
    supply(1, 7);
    expect([meter.epoch, request.admission?.kind]).toEqual([7, 'admitted']);
    supply(1, 6);
    expect(meter.tokens).toBe(0);
  });
});
