import type { Worker } from 'node:cluster';

/** The messages of node:cluster between a primary and a worker: lib/internal/cluster in Node. */
interface ClusterMessage {
  readonly cmd: 'NODE_CLUSTER';
  readonly act?: unknown;
  readonly key?: unknown;
  readonly errno?: unknown;
  readonly seq?: unknown;
  readonly ack?: unknown;
  readonly accepted?: unknown;
}

/** The workers that share a listening socket. When the last one leaves, the primary closes it: an empty set is never used again. */
type Listeners = Set<number>;

interface Handoff {
  readonly connection: Closable;
  readonly listeners: Listeners;
}

interface Closable {
  close(): void;
}

/**
 * Takes back the connections that the primary passed to a worker that ended before it accepted them.
 *
 * Node keeps such a connection open for ever, and its client gets neither an answer nor a close: the round-robin hand-off waits for
 * an acknowledgement, whatever happens to the worker. A worker acknowledges a connection before it reads from it, so another worker
 * can serve it. Node itself passes a connection on that a worker has refused, so a refusal is emitted in the name of the worker.
 */
export class ConnectionHandoffs {
  readonly #listeners = new Map<unknown, Listeners>();
  readonly #pending = new Map<number, Map<unknown, Handoff>>();

  /** The number of connections that no worker has accepted yet. */
  get pending(): number {
    return [...this.#pending.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** To be called as soon as the worker is forked, before anything is sent to it. */
  watch({ id, process: child }: Worker): void {
    const pending = new Map<unknown, Handoff>();
    this.#pending.set(id, pending);
    // Node sends its own messages by this method too.
    const send = child.send.bind(child);
    Object.assign(child, {
      send: (...args: Parameters<typeof send>): boolean => {
        const [message, handle]: readonly unknown[] = args;
        if (isClusterMessage(message)) this.#onSent(id, pending, message, handle);
        return Reflect.apply(send, undefined, args);
      },
    });
    // After the listeners of Node, which have been there since the fork.
    child.on('internalMessage', (message: unknown) => {
      if (isClusterMessage(message)) this.#onReceived(id, pending, message);
    });
    let isDisconnected = false;
    child.once('disconnect', () => {
      isDisconnected = true;
      this.#leaveAll(id);
    });
    child.once('exit', () => {
      if (!child.connected) this.#leaveAll(id);
    });
    // It has ended, and all its messages have arrived.
    child.once('close', () => {
      setImmediate(() => {
        // Node does not emit this while a connection on its way to the worker is unacknowledged, and then keeps its place in the round.
        if (!isDisconnected) child.emit('disconnect');
        this.#pending.delete(id);
        for (const [seq, { connection, listeners }] of pending) {
          if (listeners.size === 0) connection.close();
          else child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false });
        }
      });
    });
  }

  #onSent(worker: number, pending: Map<unknown, Handoff>, message: ClusterMessage, handle: unknown): void {
    const { act, key, seq, ack, errno } = message;
    if (act === 'newconn') {
      const listeners = this.#listeners.get(key);
      if (listeners !== undefined && isClosable(handle)) pending.set(seq, { connection: handle, listeners });
    } else if (ack !== undefined && key !== undefined && !Number(errno)) {
      // The answer to a worker that wants to listen.
      const listeners = this.#listeners.get(key) ?? new Set();
      this.#listeners.set(key, listeners.add(worker));
    }
  }

  #onReceived(worker: number, pending: Map<unknown, Handoff>, { act, key, ack, accepted }: ClusterMessage): void {
    if (act === 'close') return this.#leave(worker, key);
    const handoff = pending.get(ack);
    if (handoff === undefined) return;
    pending.delete(ack);
    // Node has put it into the queue of a socket that is closed.
    if (accepted !== true && handoff.listeners.size === 0) handoff.connection.close();
  }

  #leave(worker: number, key: unknown): void {
    const listeners = this.#listeners.get(key);
    listeners?.delete(worker);
    if (listeners?.size === 0) this.#listeners.delete(key);
  }

  #leaveAll(worker: number): void {
    for (const key of [...this.#listeners.keys()]) this.#leave(worker, key);
  }
}

function isClusterMessage(message: unknown): message is ClusterMessage {
  return typeof message === 'object' && message !== null && 'cmd' in message && message.cmd === 'NODE_CLUSTER';
}

function isClosable(handle: unknown): handle is Closable {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function';
}
