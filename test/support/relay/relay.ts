/**
 * A TCP relay that injects network faults: delays, slow delivery, cuts, resets and stalls. It uses real sockets; random
 * choices come from a seed.
 *
 *     const relay = await startRelay(upstream.url, { seed: 1 });
 *     relay.injectFaults({ down: { end: { after: [0, 700], how: 'reset' } } });   // each response breaks somewhere
 *     await relay.refuse();                                                       // connections are refused
 *     await relay.accept();
 */
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import type { Random } from '../../../src/core/scalars.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { RelayFlow } from './relay-flow.ts';
import type { FlowFault, FlowDirection } from './relay-flow.ts';
import { blackholePort } from './blackhole-port.ts';

export type { FlowFault, FlowDirection } from './relay-flow.ts';

/** The faults of a connection; none by default. */
export interface LinkFaults {
  /** From the client to the target. */
  readonly up?: FlowFault;
  /** From the target to the client. */
  readonly down?: FlowFault;
}

/** The faults of the n-th connection, from 1. */
export type FaultPlan = (nth: number, random: Random) => LinkFaults;

/** Starts a relay to `target` on a free port of 127.0.0.1. */
export async function startRelay(target: string, { seed = 1 }: { readonly seed?: number } = {}): Promise<Relay> {
  const { hostname, port } = new URL(target);
  const relay = new Relay({ host: hostname, port: Number(port) }, seededRandom(seed));
  await relay.accept();
  return relay;
}

export class Relay {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #random: Random;
  readonly #links = new Set<Link>();
  #plan: FaultPlan = () => ({});
  #server: Server | undefined;
  #release: (() => Promise<void>) | undefined;
  #port = 0;
  #taken = 0;

  constructor(target: { readonly host: string; readonly port: number }, random: Random) {
    this.#target = target;
    this.#random = random;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Open connections, oldest first. */
  get links(): readonly Link[] {
    return [...this.#links];
  }

  /** Connections accepted so far. */
  get taken(): number {
    return this.#taken;
  }

  /** Sets the faults of open and later connections, or only of `new` ones, and restarts their byte counts. */
  injectFaults(faults: LinkFaults | FaultPlan, which: 'all' | 'new' = 'all'): void {
    this.#plan = typeof faults === 'function' ? faults : () => faults;
    if (which === 'all') for (const link of this.#links) link.spoil(this.#plan(link.number, this.#random));
  }

  /** Removes the faults, also from open connections. */
  clearFaults(): void {
    this.injectFaults({});
  }

  /** Accepts connections, always on the same port. */
  async accept(): Promise<void> {
    if (this.#server !== undefined) return;
    await this.#release?.();
    this.#release = undefined;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#take(client));
    await listen(server, this.#port);
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Refuses new connections. Open ones stay open. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    // Does not wait for 'close', which needs all accepted connections to end.
    server.close();
    await Promise.resolve();
  }

  /** Neither accepts nor refuses new connections. Open ones stay open. */
  async blackhole(): Promise<void> {
    await this.refuse();
    this.#release ??= await blackholePort(this.#port);
  }

  /** Simulates a partition: no new connections, and no bytes on open ones, which stay open. */
  async partition(): Promise<void> {
    this.#each((link, way) => link.pause(way));
    await this.blackhole();
  }

  /** Ends the partition: bytes sent meanwhile arrive late, as with TCP. */
  async rejoin(): Promise<void> {
    await this.accept();
    this.#each((link, way) => link.resume(way));
  }

  /** Ends every open connection. */
  break(how: 'cut' | 'reset'): void {
    for (const link of this.links) link.break(how);
  }

  async close(): Promise<void> {
    await this.refuse();
    await this.#release?.();
    this.break('reset');
  }

  #each(act: (link: Link, way: FlowDirection) => void): void {
    for (const link of this.#links) for (const way of ['up', 'down'] as const) act(link, way);
  }

  #take(client: Socket): void {
    this.#taken += 1;
    const faults = this.#plan(this.#taken, this.#random);
    const target = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const link = new Link(this.#taken, client, target, faults, this.#random);
    this.#links.add(link);
    client.on('close', () => this.#links.delete(link));
  }
}

/** One connection and its continuation to the target. */
export class Link {
  readonly number: number;
  readonly #client: Socket;
  readonly #target: Socket;
  readonly #flows: Readonly<Record<FlowDirection, RelayFlow>>;

  constructor(number: number, client: Socket, target: Socket, faults: LinkFaults, random: Random) {
    this.number = number;
    this.#client = client;
    this.#target = target;
    const broken = (how: 'cut' | 'reset'): void => this.break(how);
    this.#flows = {
      up: new RelayFlow(client, target, random, broken),
      down: new RelayFlow(target, client, random, broken),
    };
    this.spoil(faults);
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      one.on('error', () => reset(other));
      one.on('close', () => other.destroySoon());
    }
  }

  /** Like `Relay.injectFaults`, for this connection only. */
  spoil({ up = {}, down = {} }: LinkFaults): void {
    this.#flows.up.spoil(up);
    this.#flows.down.spoil(down);
  }

  /** Bytes forwarded so far. */
  passed(way: FlowDirection): number {
    return this.#flows[way].passed;
  }

  pause(way: FlowDirection): void {
    this.#flows[way].pause();
  }

  resume(way: FlowDirection): void {
    this.#flows[way].resume();
  }

  /** Ends both sides: cleanly (FIN) or not (RST). */
  break(how: 'cut' | 'reset'): void {
    for (const socket of [this.#client, this.#target]) {
      if (how === 'reset') reset(socket);
      else socket.destroySoon();
    }
  }
}

/** Node 24 never closes a socket that is reset while its FIN is pending (libuv: uv_tcp_close_reset, EINVAL). */
function reset(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}

const ATTEMPTS = 50;

/** Retries, because an outgoing connection may use the closed port for a moment. */
async function listen(server: Server, port: number): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    server.listen({ host: '127.0.0.1', port, backlog: 4096 });
    try {
      await once(server, 'listening');
      return;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
