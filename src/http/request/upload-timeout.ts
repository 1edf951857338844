import type { Clock, Millis } from '../../core/scalars.ts';
import { Deadline } from '../deadline.ts';

export interface UploadTimeoutOptions {
  /** How long a client may send nothing. */
  readonly idleTimeout: Millis;
  /** Minimum bytes per second, averaged over each `idleTimeout` of waiting for the client; 0: none. */
  readonly minRate: number;
  readonly clock: Clock;
  /** Called once. */
  readonly onTimeout: (reason: UploadTimeoutReason) => void;
}

/** `idle`: nothing arrived for too long. `slow`: bytes arrived too slowly. */
export type UploadTimeoutReason = 'idle' | 'slow';

/**
 * Limits how long an upload may keep the proxy waiting. Time counts only while the proxy waits for the client, not while it pauses
 * the client because the upstream takes no more. The rate is averaged over short spans, because an average over the whole body
 * would let a client that started fast trickle for hours.
 */
export class UploadTimeout {
  readonly #options: UploadTimeoutOptions;
  readonly #deadline: Deadline;
  #isWaiting = false;
  #hasExpired = false;
  #endedAt: Millis | undefined;
  /** In this span: start of the wait that is not added up yet, time waited before it, and bytes received. */
  #since: Millis = 0;
  #waitedFor: Millis = 0;
  #receivedBytes = 0;

  constructor(options: UploadTimeoutOptions) {
    this.#options = options;
    this.#deadline = new Deadline(options.clock);
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** When the upload was complete; undefined before. */
  get endedAt(): Millis | undefined {
    return this.#endedAt;
  }

  /** The proxy waits for the client. */
  startWaiting(): void {
    if (this.#isWaiting || this.#hasExpired || this.#endedAt !== undefined) return;
    this.#isWaiting = true;
    this.#since = this.#options.clock.now();
    this.#deadline.arm(this.#options.idleTimeout, this.#onIdle);
  }

  onBytes(bytes: number): void {
    const { idleTimeout, minRate } = this.#options;
    this.#receivedBytes += bytes;
    if (!this.#isWaiting) return;
    this.#deadline.extend();
    this.#accumulate();
    if (this.#waitedFor < idleTimeout) return;
    if (this.#receivedBytes < (minRate * this.#waitedFor) / 1000) return this.#expire('slow');
    this.#waitedFor = 0;
    this.#receivedBytes = 0;
  }

  /** The proxy does not wait for the client. */
  stopWaiting(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#accumulate();
    this.#deadline.disarm();
  }

  /** Ends the upload at once: other requests wait for its connection or place. */
  expireNow(): void {
    if (!this.#hasExpired) this.#expire('idle');
  }

  /** The upload is complete: the client is not late any more. */
  end(): void {
    this.close();
    this.#endedAt ??= this.#options.clock.now();
  }

  /** The upload is over, or is no longer read. */
  close(): void {
    this.stopWaiting();
    this.#deadline.close();
  }

  #accumulate(): void {
    const now = this.#options.clock.now();
    this.#waitedFor += now - this.#since;
    this.#since = now;
  }

  readonly #onIdle = (): void => this.#expire('idle');

  #expire(reason: UploadTimeoutReason): void {
    this.close();
    this.#hasExpired = true;
    this.#options.onTimeout(reason);
  }
}
