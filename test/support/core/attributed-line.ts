/** Requests with attributes, sent to an adaptive rate one after another. */
import { AdaptiveRate } from '../../../src/core/rate/adaptive-rate.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import type { BlockedPart, RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { classifyBlockedPart, makeRequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../../src/core/scalars.ts';

export interface From {
  readonly address?: string;
  readonly client?: string;
  readonly credential?: number;
  readonly path?: string;
}

/** The attributes of a request that comes from there. */
export function from({ address = 'here', client = address, credential = 0, path = '/' }: From = {}): RequestAttributes {
  return makeRequestAttributes(address, client, credential, path, '');
}

/** An adaptive rate that receives one request after another, each with its attributes. */
export class Line {
  readonly rate: AdaptiveRate;
  now: Millis = 1000;

  constructor(settings: Partial<RateSettings> = {}) {
    const usual = { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 };
    this.rate = new AdaptiveRate({ ...usual, ...settings }, () => 0.5);
  }

  /** Answers a request at once if it may be sent. Returns whether it was. */
  ask(
    answer: 'accepted' | 'rejected' | 'failed' | 'unreachable',
    source: RequestAttributes,
    retryAfter?: Millis,
  ): boolean {
    const { now, rate } = this;
    rate.advance(now, true);
    if (rate.delay(now, source) > 0) return false;
    rate.admit(now, source);
    rate.inFlightLimiter.releaseReservation();
    rate.onSent(now);
    if (answer === 'rejected') {
      rate.onRejected(
        { sentAt: now, inFlightAtSend: 0, retryAfterMs: retryAfter, activeClients: 1, attributes: source },
        now,
      );
    } else if (answer !== 'accepted') {
      const isUnreachable = answer === 'unreachable';
      rate.onFailed({ sentAt: now, retryAfterMs: retryAfter, isUnreachable, attributes: source }, now);
    } else rate.onAccepted(now, 0, now, source);
    rate.inFlightLimiter.onEnded(now);
    this.now += 1;
    return true;
  }

  get part(): BlockedPart | undefined {
    const block = this.rate.breaker.status(this.now);
    return block === undefined ? undefined : classifyBlockedPart(block.scope);
  }
}

export const eight = Array.from({ length: 8 }, (_, i) => i);

/** Blocked by errors of these requests. */
export function blockedBy(of: (i: number) => From, settings: Partial<RateSettings> = {}, retryAfter?: Millis): Line {
  const line = new Line(settings);
  for (const i of eight) line.ask('failed', from(of(i)), retryAfter);
  return line;
}
