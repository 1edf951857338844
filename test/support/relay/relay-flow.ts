import type { Socket } from 'node:net';
import type { Millis, Random } from '../../../src/core/scalars.ts';

/** `up`: from the client to the target. */
export type FlowDirection = 'up' | 'down';

/** Faults of one direction. */
export interface FlowFault {
  /** Delays every byte. */
  readonly delay?: Millis;
  /** Passes `bytes` at a time, with `every` ms between. */
  readonly trickle?: { readonly bytes: number; readonly every: Millis };
  /** The end after a number of bytes; for a range, a random number in it, the upper bound excluded. */
  readonly end?: { readonly after: number | readonly [from: number, to: number]; readonly how: FlowEnd };
}

export type FlowEnd =
  /** Both directions end with a FIN. */
  | 'cut'
  /** Both directions end with a RST. */
  | 'reset'
  /** This direction ends with a FIN; the other stays open. */
  | 'truncate'
  /** No more bytes pass, and the connection stays open. */
  | 'stall';

/** Bytes buffered here; the rest remains in the sender's socket. */
const HIGH_WATER = 64 * 1024;

interface Piece {
  /** Empty if the sender has ended. */
  bytes: Buffer;
  due: Millis;
}

/** One direction of a connection. */
export class RelayFlow {
  readonly #source: Socket;
  readonly #sink: Socket;
  readonly #random: Random;
  readonly #broken: (how: 'cut' | 'reset') => void;
  readonly #waiting: Piece[] = [];
  #size = 0;
  #fault: FlowFault = {};
  #left = Number.POSITIVE_INFINITY;
  #next: Millis = 0;
  #timer: NodeJS.Timeout | undefined;
  #state: 'open' | 'paused' | 'over' = 'open';
  #passed = 0;

  constructor(source: Socket, sink: Socket, random: Random, broken: (how: 'cut' | 'reset') => void) {
    this.#source = source;
    this.#sink = sink;
    this.#random = random;
    this.#broken = broken;
    source.on('data', (bytes: Buffer) => this.#take(bytes));
    source.on('end', () => this.#take(Buffer.alloc(0)));
    sink.on('drain', () => this.#pump());
    sink.on('close', () => clearTimeout(this.#timer));
  }

  get passed(): number {
    return this.#passed;
  }

  /** Applies a fault to buffered and later bytes, in order, and restarts its byte count. */
  spoil(fault: FlowFault): void {
    this.#fault = fault;
    this.#next = 0;
    const due = performance.now() + (fault.delay ?? 0);
    for (const piece of this.#waiting) piece.due = Math.min(piece.due, due);
    const after = fault.end?.after ?? Number.POSITIVE_INFINITY;
    this.#left =
      typeof after === 'number' ? after : after[0] + Math.floor(this.#random() * Math.max(1, after[1] - after[0]));
    this.#pump();
  }

  pause(): void {
    if (this.#state === 'open') this.#state = 'paused';
  }

  resume(): void {
    if (this.#state === 'paused') this.#state = 'open';
    this.#pump();
  }

  #take(bytes: Buffer): void {
    if (this.#state === 'over') return;
    const now = performance.now();
    const after = this.#waiting.at(-1)?.due ?? 0;
    this.#waiting.push({ bytes, due: Math.max(after, now + (this.#fault.delay ?? 0)) });
    this.#size += bytes.length;
    if (this.#size > HIGH_WATER) this.#source.pause();
    this.#pump();
  }

  #pump(): void {
    clearTimeout(this.#timer);
    while (this.#state === 'open' && !this.#sink.destroyed && !this.#sink.writableNeedDrain) {
      const piece = this.#waiting[0];
      if (piece === undefined) break;
      const wait = Math.max(piece.due, this.#next) - performance.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.#pump(), wait);
        break;
      }
      if (piece.bytes.length === 0) return this.#over(() => this.#sink.end());
      if (this.#left === 0) return this.#end();
      this.#pass(piece);
    }
    if (this.#size <= HIGH_WATER) this.#source.resume();
  }

  #pass(piece: Piece): void {
    const { trickle } = this.#fault;
    const count = Math.min(piece.bytes.length, this.#left, trickle?.bytes ?? Number.POSITIVE_INFINITY);
    this.#sink.write(piece.bytes.subarray(0, count));
    this.#passed += count;
    this.#left -= count;
    this.#size -= count;
    if (trickle !== undefined) this.#next = performance.now() + trickle.every;
    if (count === piece.bytes.length) this.#waiting.shift();
    else piece.bytes = piece.bytes.subarray(count);
    if (this.#left === 0) this.#end();
  }

  #end(): void {
    const how = this.#fault.end?.how;
    if (how === 'truncate') this.#over(() => this.#sink.end());
    else if (how === 'stall') this.#over(() => undefined);
    // Only after the bytes already passed have been written.
    else if (how !== undefined) this.#over(() => this.#sink.write('', () => this.#broken(how)));
  }

  /** Reads and discards everything that still arrives. */
  #over(last: () => void): void {
    this.#state = 'over';
    this.#waiting.length = 0;
    this.#size = 0;
    this.#source.resume();
    last();
  }
}
