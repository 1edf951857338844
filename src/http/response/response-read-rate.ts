import type { CutReason } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Arrival } from '../request/routed-request.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { StallParts } from './client-stall.ts';
import { Stall } from './client-stall.ts';

export interface AnswerReadingOptions extends StallParts {
  /** Over which its rate is taken. */
  readonly span: Millis;
  /** Bytes a second that the client has to read while it leaves some unread; 0 for any. */
  readonly rate: number;
  /** It has read more slowly than it may; or others wait for the connection. */
  readonly onCut: (why: CutReason) => void;
}

/**
 * How a client reads its answer: time passes here while it leaves some of it unread, and so keeps its connection. What it has read shows
 * only when the system has room again, which may be a megabyte later: until then there is no telling a slow reader from one that has
 * stopped, who is given up when the stream has been idle for too long.
 */
export class AnswerReading {
  readonly #options: AnswerReadingOptions;
  readonly #stall: Stall;
  /** In this span: for how long some was left unread, and what was read. */
  #waited: Millis = 0;
  #read = 0;

  constructor(options: AnswerReadingOptions) {
    this.#options = options;
    this.#stall = new Stall(options, () => options.onCut('gave_way'));
  }

  /** It takes no more for now. */
  stall(): void {
    this.#stall.wait();
  }

  /** It has read all that was written. */
  resume(bytes: number): void {
    const { clock, rate, span, onCut } = this.#options;
    this.#waited += Math.max(0, clock.now() - this.#stall.since);
    this.#read += bytes;
    this.#stall.rest();
    if (this.#waited < span) return;
    if (this.#read < (rate * this.#waited) / 1000) return onCut('slow_reader');
    this.#waited = 0;
    this.#read = 0;
  }

  /** Nothing more is to be read of it. */
  end(): void {
    this.#stall.end();
  }
}

/** @param holder whose connection it is @param onCut it is to be broken off */
export function watchReading(
  { clock, stalledReaders: stalled, listen }: Pick<ExchangeContext, 'clock' | 'stalledReaders' | 'listen'>,
  { route, snapshot }: Arrival,
  holder: string,
  onCut: AnswerReadingOptions['onCut'],
): AnswerReading {
  const upstream = route.target.name;
  const { bodyIdle: span, readRate: rate } = snapshot;
  const onCutHere = (why: CutReason): void => {
    listen({ type: 'reader-cut', upstream, why });
    onCut(why);
  };
  return new AnswerReading({ upstream, holder, clock, stalled, span, rate, onCut: onCutHere });
}
