// Clients in their own process over plain sockets, so that they cost little compared with the measured proxy. Started by
// ../measure.ts with a plan; reports the beginning and the end of the counted span, then the results.

import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadPlan } from '../plan.ts';
import type { Loaded } from '../plan.ts';

const plan = loadPlan.parse(JSON.parse(process.argv[2] ?? ''));
const { hostname, port } = new URL(plan.url);
const HEAD_END = Buffer.from('\r\n\r\n');

const rest = Buffer.concat([
  Buffer.from(
    ['', ...(plan.upload > 0 ? ['Content-Type: application/json', `Content-Length: ${plan.upload}`] : []), '\r\n'].join(
      '\r\n',
    ),
  ),
  Buffer.alloc(plan.upload, '1'),
]);
const line = `${plan.method} ${plan.path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAccept: */*\r\nUser-Agent: bench\r\nX-Api-Key: client-`;
/** One request for each client, within a memory limit. */
const requests: Buffer[] = [];
let turn = 0;

function nextRequest(): Buffer {
  turn = (turn + 1) % plan.clients;
  return (requests[turn] ??= Buffer.concat([Buffer.from(`${line}${turn}`), rest]));
}

let isCounting = false;
let isOver = false;
let answered = 0;
let failed = 0;
const took: number[] = [];
/** Due times of requests that wait for a free connection. */
const due: number[] = [];
const idle: Connection[] = [];
/** Requests in flight. */
let asking = 0;

/** A connection with one request at a time. */
class Connection {
  readonly #socket: Socket;
  #sentAt = 0;
  #isBusy = false;
  /** The partial head; undefined while the body arrives. */
  #head: Buffer | undefined = Buffer.alloc(0);
  #left = 0;

  constructor() {
    this.#socket = connect(Number(port), hostname, () => this.#next()).setNoDelay(true);
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk));
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => {
      if (this.#isBusy) failed += 1;
      this.#settle();
      const at = idle.indexOf(this);
      if (at >= 0) idle.splice(at, 1);
      if (!isOver) open();
    });
  }

  send(dueAt: number): void {
    this.#sentAt = dueAt;
    this.#isBusy = true;
    asking += 1;
    this.#head = Buffer.alloc(0);
    this.#socket.write(nextRequest());
  }

  end(): void {
    this.#settle();
    this.#socket.destroy();
  }

  #next(): void {
    if (plan.rate !== undefined) {
      const waiting = due.shift();
      if (waiting === undefined) idle.push(this);
      else this.send(waiting);
      return;
    }
    idle.push(this);
    askNext();
  }

  /** Ends the current request, answered or failed. */
  #settle(): void {
    if (this.#isBusy) asking -= 1;
    this.#isBusy = false;
  }

  #read(chunk: Buffer): void {
    if (this.#head === undefined) {
      this.#left -= chunk.length;
    } else {
      this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
      const end = this.#head.indexOf(HEAD_END);
      if (end < 0) return;
      const head = this.#head.toString('latin1', 0, end);
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN);
      if (!head.startsWith('HTTP/1.1 200 ') || length !== plan.download) {
        if (isCounting) failed += 1;
        this.#settle();
        this.#socket.destroy();
        return;
      }
      this.#left = length - (this.#head.length - end - HEAD_END.length);
      this.#head = undefined;
    }
    if (this.#left > 0) return;
    this.#settle();
    if (isCounting) {
      answered += 1;
      took.push(performance.now() - this.#sentAt);
    }
    if (!isOver) this.#next();
  }
}

const connections = new Set<Connection>();
for (let i = 0; i < plan.connections; i += 1) open();
if (plan.rate !== undefined) void pace(plan.rate);

await sleep(plan.warmup);
process.send?.('begins');
isCounting = true;
const begun = performance.now();
await sleep(plan.span);
isCounting = false;
const span = performance.now() - begun;
process.send?.('ends');
isOver = true;
for (const connection of connections) connection.end();
const sorted = took.toSorted((a, b) => a - b);
const quantile = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
const result: Loaded = {
  answered,
  failed,
  span,
  p50: quantile(0.5),
  p99: quantile(0.99),
  p999: quantile(0.999),
};
process.send?.(result, () => process.exit());

/** Sends on the connection that has been idle for longest. */
function askNext(): void {
  while (asking < (plan.inFlight ?? plan.connections)) {
    const next = idle.shift();
    if (next === undefined) return;
    next.send(performance.now());
  }
}

function open(): void {
  connections.add(new Connection());
}

function isGoingOn(): boolean {
  return !isOver;
}

/** Sends at absolute times: a late timer sends all due requests, and its delay counts as latency. */
async function pace(rate: number): Promise<void> {
  const start = performance.now();
  for (let n = 0; isGoingOn(); ) {
    const now = performance.now();
    for (; start + (1000 * n) / rate <= now; n += 1) {
      const dueAt = start + (1000 * n) / rate;
      const connection = idle.shift();
      if (connection === undefined) due.push(dueAt);
      else connection.send(dueAt);
    }
    await sleep(1);
  }
}
