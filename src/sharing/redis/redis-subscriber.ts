import type { Clock, Millis, Random } from '../../core/scalars.ts';
import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { ClientHold } from '../../core/limits/client-holds.ts';
import type { TermsBroadcast } from '../replicas/replica-protocol.ts';
import { AccountNoticeChannel } from './account-notice-channel.ts';
import { ClientHoldChannel } from './client-hold-channel.ts';
import { decodeBroadcast } from './lease-codec.ts';
import { isPermissionError, PubSubHeartbeat } from './pubsub-heartbeat.ts';
import type { RedisClient } from './redis-connection.ts';
import type { RedisRequests } from './redis-requests.ts';

export interface RedisSubscriberParts {
  readonly requests: RedisRequests;
  /** The prefix of all keys and channels. */
  readonly prefix: string;
  readonly db: number;
  /** The layout of stored limits, which names the channel of broadcasts. */
  readonly layout: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Whether the command connection is ready, and uses the right database. */
  readonly isConnected: () => boolean;
  readonly onRequest: (op: 'hold', result: 'ok' | 'error', took: Millis) => void;
  /** Another process's report has changed a limit. */
  readonly onBroadcast: (broadcast: TermsBroadcast) => void;
  /** Another process has published a hold. */
  readonly onHold: (hold: ClientHold) => void;
  /** Another process has published a notice of an account. */
  readonly onNotice: (notice: AccountNotice) => void;
  /** Another process has changed what is known of a write: see `parseAnnouncement`. */
  readonly onKeyNews: (message: string) => void;
  /** Another process has had a response after a failure. */
  readonly onRecoveryAnnounced: () => void;
  /** An access rule of Redis forbids publish/subscribe, with its message; undefined: it works again. */
  readonly onPubSubLost: (cause: string | undefined) => void;
  readonly onProblem: (error: unknown) => void;
}

/** Publishes to the other processes that share limits in a Redis, and receives what they publish. */
export class RedisSubscriber {
  readonly broadcastChannel: string;
  readonly keyChannel: string;
  readonly #parts: RedisSubscriberParts;
  readonly #client: RedisClient;
  readonly #subscriber: RedisClient;
  readonly #recoveryChannel: string;
  readonly #holdChannel: ClientHoldChannel;
  readonly #noticeChannel: AccountNoticeChannel;
  readonly #heartbeat: PubSubHeartbeat;

  /** @param client the connection for commands @param subscriber a connection of its own for subscriptions */
  constructor(client: RedisClient, subscriber: RedisClient, parts: RedisSubscriberParts) {
    const { prefix, db, layout } = parts;
    this.#parts = parts;
    this.#client = client;
    this.#subscriber = subscriber;
    this.broadcastChannel = `${channelName('news', prefix, db)}:${layout}`;
    this.keyChannel = channelName('keys', prefix, db);
    this.#recoveryChannel = channelName('back', prefix, db);
    this.#holdChannel = new ClientHoldChannel(client, { ...parts, channel: channelName('holds', prefix, db) });
    this.#noticeChannel = new AccountNoticeChannel(client, { ...parts, channel: channelName('accounts', prefix, db) });
    this.#heartbeat = new PubSubHeartbeat(client, subscriber, parts);
    subscriber.on('ready', () => void this.#subscribe());
    subscriber.on('messageBuffer', (channel: Buffer, message: Buffer) => this.#onMessage(channel.toString(), message));
  }

  open(): void {
    this.#heartbeat.open();
  }

  close(): void {
    this.#holdChannel.close();
    this.#noticeChannel.close();
    this.#heartbeat.close();
  }

  publishHold(hold: ClientHold): void {
    this.#holdChannel.publish(hold);
  }

  publishNotice(notice: AccountNotice): void {
    this.#noticeChannel.publish(notice);
  }

  loadNotices(): void {
    void this.#noticeChannel.load();
  }

  /** Informs the other processes, which may still be in fallback, that Redis answers again. */
  announceRecovery(): void {
    this.#client.publish(this.#recoveryChannel, '').catch((error: unknown) => this.#parts.onProblem(error));
  }

  /** Loads the stored holds and quarantines. Called both on subscription and on connection of the client: either may be the later. */
  async loadStored(): Promise<void> {
    try {
      await Promise.all([this.#holdChannel.load(), this.#noticeChannel.load()]);
    } catch (error) {
      this.#parts.onProblem(error);
    }
  }

  async #subscribe(): Promise<void> {
    const news = [this.broadcastChannel, this.keyChannel, this.#holdChannel.channel, this.#noticeChannel.channel];
    const channels = [...news, this.#recoveryChannel, this.#heartbeat.channel];
    try {
      await this.#subscriber.subscribe(...channels);
      if (this.#parts.isConnected()) await this.loadStored();
    } catch (error) {
      this.#parts.onProblem(error);
      if (isPermissionError(error)) this.#parts.onPubSubLost(error.message);
    }
  }

  #onMessage(channel: string, message: Buffer): void {
    if (channel === this.#recoveryChannel) return this.#parts.onRecoveryAnnounced();
    if (channel === this.#heartbeat.channel) return this.#heartbeat.onMessage();
    if (channel === this.keyChannel) return this.#parts.onKeyNews(message.toString());
    if (channel === this.#holdChannel.channel) return this.#holdChannel.onMessage(message.toString());
    if (channel === this.#noticeChannel.channel) return this.#noticeChannel.onMessage(message.toString());
    const broadcast = decodeBroadcast(message);
    if (broadcast !== undefined) this.#parts.onBroadcast(broadcast);
  }
}

/** Keys belong to one database, but published messages reach all of them. */
function channelName(name: 'news' | 'back' | 'holds' | 'keys' | 'accounts', prefix: string, db: number): string {
  return `${prefix}:${name}${db === 0 ? '' : `:${db}`}`;
}
