import { randomUUID } from 'node:crypto';
import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import { nameCredential, NoticeOutbox } from '../protocol/notice-outbox.ts';
import { formatNotice, parseNotice } from './account-notice-codec.ts';
import { isPermissionError } from './pubsub-heartbeat.ts';
import type { RedisClient } from './redis-connection.ts';

export interface AccountNoticeChannelParts {
  readonly prefix: string;
  readonly channel: string;
  readonly clock: Clock;
  /** Whether the command connection is ready, and uses the right database. */
  readonly isConnected: () => boolean;
  readonly onNotice: (notice: AccountNotice) => void;
  readonly onProblem: (error: unknown) => void;
}

/** The longest round trip whose middle is exact enough for the time at which Redis has read its clock. */
const MAX_ROUND_TRIP: Millis = 500;
const MAX_READS = 3;
/** The delay after a failed send. */
const RETRY_AFTER: Millis = 1000;
/** Messages that arrive beyond it while the clock is read are lost; later notices replace them. */
const MAX_RECEIVED = 1000;
/** Redis forgets the quarantines if none of them has changed for so long. */
const KEPT_FOR: Millis = 86_400_000;

/**
 * Publishes notices of accounts to the other processes, and stores the last notice of each credential in quarantine for processes that start
 * later. What cannot be published is sent once Redis is connected again.
 */
export class AccountNoticeChannel {
  readonly channel: string;
  /** A hash, with a field for each credential in quarantine. */
  readonly #key: string;
  readonly #client: RedisClient;
  readonly #parts: AccountNoticeChannelParts;
  readonly #sender = randomUUID();
  readonly #outbox = new NoticeOutbox();
  #timer: NodeJS.Timeout | undefined;
  #reloadTimer: NodeJS.Timeout | undefined;
  #received: string[] = [];
  /** Sends do not overlap: an older notice must not replace a later one. */
  #isSending = false;
  #isClosed = false;

  constructor(client: RedisClient, parts: AccountNoticeChannelParts) {
    this.#client = client;
    this.#parts = parts;
    this.channel = parts.channel;
    this.#key = `${parts.prefix}:{quarantines}`;
  }

  publish(notice: AccountNotice): void {
    this.#outbox.add(notice);
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#reloadTimer);
  }

  /** Handles a message of another process. Those that arrive while the clock is read are handled with it. */
  onMessage(message: string): void {
    const isReading = this.#received.length > 0;
    this.#received.push(...message.split('\n', MAX_RECEIVED - this.#received.length));
    if (isReading) return;
    void this.#attempt(async () => {
      try {
        const offset = await this.#readOffset();
        this.#apply(this.#received, offset);
      } finally {
        this.#received = [];
      }
    });
  }

  /** Loads what was published before this process subscribed, and publishes what it could not publish before. */
  async load(): Promise<void> {
    clearTimeout(this.#reloadTimer);
    const isLoaded = await this.#attempt(async () => {
      const [kept, offset] = await Promise.all([this.#client.hvals(this.#key), this.#readOffset()]);
      this.#apply(kept, offset);
    });
    this.#schedule();
    if (isLoaded || this.#isClosed || !this.#parts.isConnected()) return; // a new connection loads again
    this.#reloadTimer = setTimeout(() => void this.load(), RETRY_AFTER).unref();
  }

  #apply(lines: readonly string[], offset: Millis): void {
    for (const line of lines) {
      const notice = parseNotice(line, this.#sender, offset);
      if (notice !== undefined) this.#parts.onNotice(notice);
    }
  }

  /** @param least the shortest time until the next send */
  #schedule(least: Millis = 0): void {
    const { dueAt } = this.#outbox;
    if (dueAt === undefined || this.#isSending || this.#isClosed || !this.#parts.isConnected()) return;
    this.#timer ??= setTimeout(() => void this.#flush(), Math.max(least, dueAt - this.#parts.clock.now())).unref();
  }

  async #flush(): Promise<void> {
    this.#timer = undefined;
    const notices = this.#outbox.take(this.#parts.clock.now());
    this.#isSending = true;
    const isSent = await this.#attempt(() => this.#send(notices));
    this.#isSending = false;
    if (!isSent) this.#outbox.restore(notices);
    this.#schedule(isSent ? 0 : RETRY_AFTER);
  }

  async #send(notices: readonly AccountNotice[]): Promise<void> {
    if (notices.length === 0) return;
    const offset = await this.#readOffset();
    const lines = notices.map((notice) => formatNotice(notice, this.#sender, offset));
    const pipeline = this.#client.pipeline();
    for (const [i, notice] of notices.entries()) {
      if (notice.quarantine === undefined) pipeline.hdel(this.#key, nameCredential(notice));
      else pipeline.hset(this.#key, nameCredential(notice), lines[i] ?? '').pexpire(this.#key, KEPT_FOR);
    }
    const results = (await pipeline.exec()) ?? [];
    try {
      await this.#client.publish(this.channel, lines.join('\n'));
    } catch (error) {
      if (!isPermissionError(error)) throw error; // the failed subscription is reported
    }
    for (const [error] of results) if (error !== null) throw error;
  }

  /** How far Redis' clock is ahead of the local one; wrong by half of `MAX_ROUND_TRIP` at most. */
  async #readOffset(): Promise<Millis> {
    for (let i = 0; i < MAX_READS; i += 1) {
      const askedAt = this.#parts.clock.now();
      const [seconds, micros] = await this.#client.time();
      const receivedAt = this.#parts.clock.now();
      if (receivedAt - askedAt > MAX_ROUND_TRIP) continue;
      return 1000 * Number(seconds) + Number(micros) / 1000 - (askedAt + receivedAt) / 2;
    }
    throw new Error(`no response to TIME within ${MAX_ROUND_TRIP} ms, in ${MAX_READS} attempts`);
  }

  /** Returns whether it succeeded. */
  async #attempt(action: () => Promise<void>): Promise<boolean> {
    try {
      await action();
      return true;
    } catch (error) {
      if (!this.#isClosed) this.#parts.onProblem(error);
      return false;
    }
  }
}
