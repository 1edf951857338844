import type { ClientHttp2Session } from 'node:http2';
import { Socket } from 'node:net';
import type { Client } from 'undici';
import type { Millis } from '../policy/types.ts';
import { isSession } from './mend-http2.ts';
import { partOf } from './part-of.ts';

/** What is quiet for so long while something is due is asked whether it is still there; and has as long to answer. */
const SILENCE: Millis = 2000;

/**
 * Finds out that a connection over HTTP/2 is dead. Node 24.21 may never tell: where a write fails at once, as after a reset,
 * its session takes no notice, has the next write wait for the end of the one that failed, and reads nothing while it waits
 * (src/node_http2.cc, OnStreamAfterWrite; src/crypto/crypto_tls.cc, EncOut). All that is sent on it then waits for ever.
 */
export class Pulse {
  readonly #client: Client;
  readonly #isWaitedFor: () => boolean;
  #timer: NodeJS.Timeout | undefined;
  #session: ClientHttp2Session | undefined;
  #socket: Socket | undefined;
  #heard = 0;
  #asked = false;

  /** @param isWaitedFor there are requests on it */
  constructor(client: Client, isWaitedFor: () => boolean) {
    this.#client = client;
    this.#isWaitedFor = isWaitedFor;
    client.on('connect', () => this.#begin());
    client.on('disconnect', () => this.#end());
  }

  /** It was asked, and has not answered yet. */
  get isDoubtful(): boolean {
    return this.#asked;
  }

  #begin(): void {
    this.#end();
    const session = partOf(this.#client, 'http2Session');
    const socket = partOf(this.#client, 'socket');
    if (!isSession(session) || !(socket instanceof Socket)) return; // HTTP/1.1
    this.#session = session;
    this.#socket = socket;
    this.#timer = setInterval(this.#feel, SILENCE).unref();
  }

  #end(): void {
    clearInterval(this.#timer);
    this.#session = undefined;
    this.#socket = undefined;
    this.#asked = false;
  }

  readonly #feel = (): void => {
    if (this.#hears()) return;
    if (this.#asked) return void setImmediate(this.#giveUp); // what has come while we were busy is read before
    if (this.#session?.destroyed !== false || this.#session.closed) return;
    this.#asked = true;
    this.#session.ping(() => undefined);
  };

  #hears(): boolean {
    const heard = this.#socket?.bytesRead ?? 0;
    const isAlive = heard !== this.#heard || !this.#isAnythingDue();
    this.#heard = heard;
    if (isAlive) this.#asked = false;
    return isAlive;
  }

  /** An answer; or what cannot be written, be it the end of a request whose client has left: the next would wait behind it. */
  #isAnythingDue(): boolean {
    return (
      this.#isWaitedFor() || (this.#session?.destroyed === false && (this.#session.state.outboundQueueSize ?? 0) > 0)
    );
  }

  readonly #giveUp = (): void => {
    if (this.#hears()) return;
    this.#socket?.destroy(Object.assign(new Error('no answer to a ping'), { code: 'ETIMEDOUT' }));
  };
}
