import type { ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock, Millis } from '../../../core/scalars.ts';
import type { DispatchRequest } from '../dispatch-request.ts';

/** Of a connection and of each stream, unless the upstream announces another (RFC 9113 §6.9.2). */
const INITIAL_WINDOW = 65_535;

/** Frames that wait for this long while nothing is written: the upstream, or the network, takes no more. */
const STUCK_AFTER: Millis = 100;

type Body = DispatchRequest['body'];

/** A request with a body on the connection. */
interface Upload {
  readonly pending: { readonly request: Pick<DispatchRequest, 'body'> };
  /** Bytes of its body that wait in this process. */
  readonly unwrittenBytes: number;
}

/**
 * Watches what an HTTP/2 connection can still send. All bodies on it share its send window, and an upstream renews the window as it reads
 * them. So a body that it does not read stops those that find no room beside it.
 */
export class Http2Output {
  /** Bytes that the upstream takes of each body before it reads any (SETTINGS_INITIAL_WINDOW_SIZE). */
  streamWindow = INITIAL_WINDOW;
  /** The largest send window seen: its size when all is read. */
  largestWindow = INITIAL_WINDOW;
  /** No body is under way, and the upstream has not renewed the window nevertheless. Known since a body was to be sent. */
  isDrained = false;
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #uploads = new Set<Upload>();
  /** Since when frames have waited; undefined if none did at the last look. */
  #waitingSince: Millis | undefined;
  /** What was written until then. */
  #bytesWritten = 0;

  constructor(session: ClientHttp2Session, socket: Socket, clock: Clock) {
    this.#session = session;
    this.#socket = socket;
    this.#clock = clock;
  }

  /** To be called before a request is sent. */
  add(upload: Upload): void {
    this.sample();
    if (this.#needOf(upload.pending.request.body) > 0) this.#uploads.add(upload);
  }

  remove(upload: Upload): void {
    this.#uploads.delete(upload);
  }

  /** Looks at the session, which is a native call. Returns the send window of the connection. */
  sample(): number {
    if (this.#session.destroyed) return this.largestWindow;
    const { remoteWindowSize = 0, outboundQueueSize = 0 } = this.#session.state;
    this.largestWindow = Math.max(this.largestWindow, remoteWindowSize);
    if (outboundQueueSize === 0) {
      this.#waitingSince = undefined;
    } else if (this.#waitingSince === undefined || this.#bytesWritten !== this.#socket.bytesWritten) {
      this.#waitingSince = this.#clock.now();
      this.#bytesWritten = this.#socket.bytesWritten;
    }
    return remoteWindowSize;
  }

  /** Frames wait, and nothing has been written since: so they wait still. */
  get isStuck(): boolean {
    return (
      this.#waitingSince !== undefined &&
      this.#clock.now() - this.#waitingSince > STUCK_AFTER &&
      this.#bytesWritten === this.#socket.bytesWritten
    );
  }

  /**
   * Whether a body goes out even if the upstream reads no other one. It fits into the window; or the others take so little of it
   * that the upstream will renew it: many do so only when they have read half of it.
   */
  hasRoomFor(body: Body | undefined): boolean {
    const need = this.#needOf(body);
    if (need === 0) return true;
    let free = this.sample();
    let held = 0;
    for (const { pending, unwrittenBytes } of this.#uploads) {
      free -= Math.min(unwrittenBytes, this.streamWindow);
      held += this.#needOf(pending.request.body);
    }
    const isLow = free < need && free < this.largestWindow / 4;
    this.isDrained = isLow && held === 0;
    return free >= need || (!isLow && (held === 0 || held + need <= this.largestWindow / 2));
  }

  /** What a body takes of the window at most while nobody reads it. */
  #needOf(body: Body | undefined): number {
    if (body === null || body === undefined) return 0;
    return Buffer.isBuffer(body) ? Math.min(body.length, this.streamWindow) : this.streamWindow;
  }
}
