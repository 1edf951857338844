import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';
import { Deadline } from './deadline.ts';

export interface PatienceOptions {
  /** How long a client may send nothing. */
  readonly idle: Millis;
  /** Bytes a second that it has to send, on average over each `idle` of waiting for it; 0 for any. */
  readonly rate: number;
  readonly clock: Clock;
  /** Called once. */
  readonly onLate: (late: Late) => void;
}

/** Nothing came for too long; or something, and too little. */
export type Late = 'idle' | 'slow';

/**
 * How long a client may keep us waiting for its body. Only while we wait for it does time pass here: what we do not read,
 * because the upstream takes no more, is no slowness of its client. An average over all of a body would let one that
 * began fast trickle for hours.
 */
export class Patience {
  readonly #options: PatienceOptions;
  readonly #deadline: Deadline;
  #isWaiting = false;
  #isLate = false;
  /** In this span: since when waited for and not added up yet; how long before that; what has come. */
  #since: Millis = 0;
  #waited: Millis = 0;
  #came = 0;

  constructor(options: PatienceOptions) {
    this.#options = options;
    this.#deadline = new Deadline(options.clock);
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** More is wanted. */
  wait(): void {
    if (this.#isWaiting || this.#isLate) return;
    this.#isWaiting = true;
    this.#since = this.#options.clock.now();
    this.#deadline.arm(this.#options.idle, this.#onIdle);
  }

  /** So many bytes have come. */
  receive(bytes: number): void {
    const { idle, rate } = this.#options;
    this.#came += bytes;
    if (!this.#isWaiting) return;
    this.#deadline.extend();
    this.#addUp();
    if (this.#waited < idle) return;
    if (this.#came < (rate * this.#waited) / 1000) return this.#tell('slow');
    this.#waited = 0;
    this.#came = 0;
  }

  /** Nothing is wanted for now. */
  rest(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#addUp();
    this.#deadline.disarm();
  }

  /** It is late already: others wait for what it keeps. */
  giveUp(): void {
    if (!this.#isLate) this.#tell('idle');
  }

  /** Nothing more is wanted. */
  close(): void {
    this.rest();
    this.#deadline.close();
  }

  #addUp(): void {
    const now = this.#options.clock.now();
    this.#waited += now - this.#since;
    this.#since = now;
  }

  readonly #onIdle = (): void => this.#tell('idle');

  #tell(late: Late): void {
    this.close();
    this.#isLate = true;
    this.#options.onLate(late);
  }
}
