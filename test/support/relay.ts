/**
 * A TCP relay that spoils what passes, as networks do: late, in crumbs, cut, reset, or never. Real sockets; what is left
 * to chance comes from a seed.
 *
 *     const relay = await startRelay(upstream.url, { seed: 1 });
 *     relay.spoil({ down: { end: { after: [0, 700], how: 'reset' } } });   // each answer breaks somewhere
 *     await relay.refuse();                                                // nobody listens any more
 *     await relay.accept();
 */
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import type { Random } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { Flow } from './relay/flow.ts';
import type { Fault, Way } from './relay/flow.ts';
import { swallow } from './relay/swallow.ts';

export type { Fault, Way } from './relay/flow.ts';

/** What happens on a connection; nothing, where nothing is said. */
export interface Faults {
  /** From the client to the target. */
  readonly up?: Fault;
  /** From the target to the client. */
  readonly down?: Fault;
}

/** The faults of the n-th connection, from 1. */
export type Plan = (nth: number, random: Random) => Faults;

/** Listens on a free port of 127.0.0.1 in front of this URL. */
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
  #plan: Plan = () => ({});
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

  /** Connections that live, oldest first. */
  get links(): readonly Link[] {
    return [...this.#links];
  }

  /** Connections taken so far. */
  get taken(): number {
    return this.#taken;
  }

  /** What happens to connections from now on: to those that live too, unless only `new` ones are meant. Bytes are counted anew. */
  spoil(faults: Faults | Plan, which: 'all' | 'new' = 'all'): void {
    this.#plan = typeof faults === 'function' ? faults : () => faults;
    if (which === 'all') for (const link of this.#links) link.spoil(this.#plan(link.number, this.#random));
  }

  /** All is well again, also with connections that live. */
  heal(): void {
    this.spoil({});
  }

  /** Listens, on the same port as ever. */
  async accept(): Promise<void> {
    if (this.#server !== undefined) return;
    await this.#release?.();
    this.#release = undefined;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#take(client));
    await listen(server, this.#port);
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Whoever connects is refused. Connections that live go on. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    // Not its 'close': that waits for the connections it has taken.
    server.close();
    await Promise.resolve();
  }

  /** Whoever connects hears nothing: neither taken nor refused. Connections that live go on. */
  async swallow(): Promise<void> {
    await this.refuse();
    this.#release ??= await swallow(this.#port);
  }

  /** The network breaks: nobody new is heard, and on connections that live nothing passes either way, while nothing ends. */
  async partition(): Promise<void> {
    this.#each((link, way) => link.pause(way));
    await this.swallow();
  }

  /** And is there again: what was sent meanwhile arrives late, as TCP has it. */
  async rejoin(): Promise<void> {
    await this.accept();
    this.#each((link, way) => link.resume(way));
  }

  /** Ends every connection that lives. */
  break(how: 'cut' | 'reset'): void {
    for (const link of this.links) link.break(how);
  }

  async close(): Promise<void> {
    await this.refuse();
    await this.#release?.();
    this.break('reset');
  }

  #each(act: (link: Link, way: Way) => void): void {
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

/** One connection and its continuation. */
export class Link {
  readonly number: number;
  readonly #client: Socket;
  readonly #target: Socket;
  readonly #flows: Readonly<Record<Way, Flow>>;

  constructor(number: number, client: Socket, target: Socket, faults: Faults, random: Random) {
    this.number = number;
    this.#client = client;
    this.#target = target;
    const broken = (how: 'cut' | 'reset'): void => this.break(how);
    this.#flows = { up: new Flow(client, target, random, broken), down: new Flow(target, client, random, broken) };
    this.spoil(faults);
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      one.on('error', () => reset(other));
      one.on('close', () => other.destroySoon());
    }
  }

  /** As `Relay.spoil`, but this one alone. */
  spoil({ up = {}, down = {} }: Faults): void {
    this.#flows.up.spoil(up);
    this.#flows.down.spoil(down);
  }

  /** Bytes passed on so far. */
  passed(way: Way): number {
    return this.#flows[way].passed;
  }

  pause(way: Way): void {
    this.#flows[way].pause();
  }

  resume(way: Way): void {
    this.#flows[way].resume();
  }

  /** Both sides see it end: cleanly (FIN), or not (RST). */
  break(how: 'cut' | 'reset'): void {
    for (const socket of [this.#client, this.#target]) {
      if (how === 'reset') reset(socket);
      else socket.destroySoon();
    }
  }
}

/** Node 24 never lets go of a socket that is reset while its FIN waits to be sent (libuv: uv_tcp_close_reset, EINVAL). */
function reset(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}

const ATTEMPTS = 50;

/** A port that was closed may be taken for a moment by somebody's outgoing connection. */
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
