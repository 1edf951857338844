import type { ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** What is quiet for so long while something is due is asked whether it is still there. */
const SILENCE: Millis = 2000;
/** While it answers and says nothing else, it is asked less and less often: some take many pings for an attack (gRPC). */
const LONGEST_SILENCE: Millis = 64_000;
/**
 * It may take as long to answer as SILENCE, and as long as a slow line, in bytes a millisecond, takes for what may be on its way
 * before the question: an upload waits in the buffers of the system, which take some megabytes (tcp(7), tcp_wmem).
 */
const SLOW_LINE = 50;
const MOST_ON_ITS_WAY = 4 * 1024 * 1024;
/** Of that, what is no body: heads, which have no flow control. */
const HEADS = 64 * 1024;

/**
 * Finds out that a connection over HTTP/2 is dead. Node 24.21 may never tell: where a write fails at once, as after a reset,
 * its session takes no notice, has the next write wait for the end of the one that failed, and reads nothing while it waits
 * (src/node_http2.cc, OnStreamAfterWrite; src/crypto/crypto_tls.cc, EncOut). All that is sent on it then waits for ever.
 */
export class Pulse {
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #isWaitedFor: () => boolean;
  readonly #timer: NodeJS.Timeout;
  /** Bytes that had come, and that had gone, at the last look. */
  #heard = 0;
  #said = 0;
  /** Bytes that may be on their way, were the line slow. */
  #onItsWay = 0;
  /** The most that the other side has allowed for in advance. */
  #window = 0;
  #quiet: Millis = 0;
  /** For how long it may be quiet. */
  #patience: Millis = SILENCE;
  /** How long ago it was asked; undefined where it has answered. */
  #asked: Millis | undefined;

  /** @param isWaitedFor there are requests on it */
  constructor(session: ClientHttp2Session, socket: Socket, isWaitedFor: () => boolean) {
    this.#session = session;
    this.#socket = socket;
    this.#isWaitedFor = isWaitedFor;
    this.#timer = setInterval(this.#feel, SILENCE).unref();
  }

  /** It was asked, and has not answered yet. */
  get isDoubtful(): boolean {
    return this.#asked !== undefined;
  }

  /** A request is sent on it. */
  expect(): void {
    this.#patience = SILENCE;
    this.noteWindow();
  }

  /** To be called often enough to see how large the window is when nothing is on its way. */
  noteWindow(): number {
    if (this.#session.destroyed) return this.#window;
    const { remoteWindowSize = 0 } = this.#session.state;
    this.#window = Math.max(this.#window, remoteWindowSize);
    return remoteWindowSize;
  }

  end(): void {
    clearInterval(this.#timer);
  }

  readonly #feel = (): void => {
    if (this.#isAlive()) return;
    if (this.#asked === undefined) {
      this.#quiet += SILENCE;
      if (this.#quiet >= this.#patience) this.#ask();
      return;
    }
    this.#asked += SILENCE;
    // What has come while we were busy is read before.
    if (this.#onItsWay === 0 && this.#asked >= SILENCE) setImmediate(this.#giveUp);
  };

  #ask(): void {
    if (this.#session.destroyed || this.#session.closed) return;
    this.#asked = 0;
    this.#patience = Math.min(LONGEST_SILENCE, 2 * this.#patience);
    this.#session.ping(() => {
      this.#onItsWay = 0; // it came behind all of that
    });
  }

  /** It says something, or takes what we say; or nobody cares. */
  #isAlive(): boolean {
    const { bytesRead, bytesWritten } = this.#socket;
    const hears = bytesRead !== this.#heard;
    const speaks = bytesWritten !== this.#said && this.#asked === undefined;
    const said = this.#onItsWay + bytesWritten - this.#said;
    this.#onItsWay = Math.min(MOST_ON_ITS_WAY, Math.max(0, said - SLOW_LINE * SILENCE), HEADS + this.#unread());
    this.#heard = bytesRead;
    this.#said = bytesWritten;
    if (!hears && !speaks && this.#isAnythingDue()) return false;
    if (!speaks || hears) this.#asked = undefined;
    this.#quiet = 0;
    return true;
  }

  /** Bytes of bodies that the other side has not made room for again: no more are on their way (RFC 9113 §5.2). */
  #unread(): number {
    const now = this.noteWindow();
    return this.#window - now;
  }

  /** An answer; or what cannot be written, be it the end of a request whose client has left: the next would wait behind it. */
  #isAnythingDue(): boolean {
    return this.#isWaitedFor() || (!this.#session.destroyed && (this.#session.state.outboundQueueSize ?? 0) > 0);
  }

  readonly #giveUp = (): void => {
    if (this.#socket.destroyed || this.#isAlive()) return;
    this.#socket.destroy(Object.assign(new Error('no answer to a ping'), { code: 'ETIMEDOUT' }));
  };
}
