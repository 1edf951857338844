import type { buildConnector } from 'undici';
import { Client, errors } from 'undici';
import { MAX_STREAMS } from '../config/listen-schema.ts';
import type { ConnectionOptions, Errand } from './connection.ts';
import type { Connections } from './endpoints.ts';
import { isGoAway } from './failure.ts';
import { fitsHttp2 } from './http2-request.ts';
import { mendResets } from './mend-http2.ts';
import { mendParsers } from './mend-parser.ts';
import { Pulse } from './pulse.ts';

export interface SharedConnectionsOptions extends Pick<ConnectionOptions, 'origin' | 'client' | 'connect' | 'leadsTo'> {
  /** Connections, at most; beside them as many may be at their last requests, and a few where this is little. */
  readonly most: number;
  /** There is room for a request again. */
  readonly onFree: () => void;
}

/**
 * A client that asks and leaves has its stream reset. Upstreams end a connection with too many of those (CVE-2023-44487: Node
 * 24 after 1000, Go after 400 at once, nginx after 100 at once), whoever else is on it. Before that it gets no more requests.
 */
const MAX_RESETS = 100;

/** Worn out or not, so many connections are not too many. */
const FEW = 16;

/** Streams are numbered once, up to 2^31, and then none can be opened any more (RFC 9113 §5.1.1). */
const MAX_REQUESTS = 1_000_000;

/**
 * The connections to one endpoint that HTTP/2 is offered to. Each carries up to a hundred requests; the first with room is
 * used, so that those too many become idle and end. While it is not known what the endpoint speaks, requests wait for the
 * first connection; one that turns out to speak HTTP/1.1 carries one at a time, and more are made.
 */
export class SharedConnections implements Connections {
  readonly #options: SharedConnectionsOptions;
  #all: SharedConnection[] = [];
  readonly #waiting = new Set<Errand>();
  /** Requests that were broken off in this turn of the event loop. */
  #broken = 0;

  constructor(options: SharedConnectionsOptions) {
    this.#options = options;
  }

  send(errand: Errand): void {
    const connection = this.#broken > 0 ? undefined : this.#find();
    if (connection !== undefined) return connection.send(errand);
    errand.hadToWait = this.#broken === 0 && !this.#all.some(({ isBeingMade }) => isBeingMade);
    this.#waiting.add(errand);
  }

  over(errand: Errand): void {
    this.#waiting.delete(errand);
    const connection = this.#all.find((each) => each === errand.shared);
    connection?.release(errand);
    if (errand.attempt.isComplete) {
      this.#settle();
      return this.#options.onFree();
    }
    // undici 8.12.4 (client.js:491, onError) may be telling this to all requests of a connection, and fails if it is handed
    // another meanwhile.
    this.#broken += 1;
    if (this.#broken === 1) setImmediate(this.#settleBroken);
  }

  /** Gives no more requests to connections to addresses that the name has left, and ends those that have none. */
  leaveOld(): void {
    this.#settle();
  }

  async destroy(): Promise<void> {
    this.#waiting.clear();
    await Promise.all(this.#all.map((connection) => connection.destroy()));
  }

  #find(): SharedConnection | undefined {
    const fits = (connection: SharedConnection): boolean => connection.hasRoom && this.#leadsOn(connection);
    const found = this.#all.find((connection) => fits(connection) && !connection.isWornOut);
    if (found !== undefined) return found;
    if (this.#all.some(({ isBeingMade }) => isBeingMade)) return undefined;
    return this.#open() ?? this.#all.findLast(fits); // the least worn out
  }

  #open(): SharedConnection | undefined {
    const { most } = this.#options;
    if (this.#all.length >= Math.max(2 * most, FEW)) return undefined;
    if (this.#all.filter(({ isWornOut }) => !isWornOut).length >= most) return undefined;
    const connection = new SharedConnection(this.#options, this.#pump);
    this.#all.push(connection);
    return connection;
  }

  readonly #settleBroken = (): void => {
    const broken = this.#broken;
    this.#broken = 0;
    this.#settle();
    for (let i = 0; i < broken; i += 1) this.#options.onFree();
  };

  #settle(): void {
    for (const connection of [...this.#all]) {
      if (connection.isAtRest && (connection.isWornOut || !this.#leadsOn(connection))) this.#drop(connection);
    }
    this.#pump();
  }

  readonly #pump = (): void => {
    if (this.#broken > 0) return;
    for (const errand of this.#waiting) {
      const connection = this.#find();
      if (connection === undefined) return;
      this.#waiting.delete(errand);
      connection.send(errand);
    }
  };

  #leadsOn({ address }: SharedConnection): boolean {
    return address === undefined || this.#options.leadsTo(address);
  }

  #drop(connection: SharedConnection): void {
    this.#all = this.#all.filter((each) => each !== connection);
    void connection.destroy();
  }
}

/** One of them: made when it is first needed, and again when it was lost. */
class SharedConnection {
  goAways = 0;
  /** Where it leads; undefined while it is not made, and where the name was not asked for it. */
  address: string | undefined = undefined;
  isBeingMade = false;
  readonly #client: Client;
  readonly #pulse: Pulse;
  #requests = 0;
  /** Since it was made: all requests, and those that were broken off. */
  #sent = 0;
  #resets = 0;
  /** What it can carry: one until it is made. */
  #room = 1;

  constructor({ origin, client, connect, leadsTo }: SharedConnectionsOptions, onMade: () => void) {
    const make: ReturnType<typeof buildConnector> = (options, done) => {
      this.isBeingMade = true;
      // The name to ask for is the connector's own: see `SendOptions.servername`.
      connect({ ...options, servername: '' }, (...made) => {
        const [error, socket] = made;
        this.isBeingMade = false;
        this.#sent = 0;
        this.#resets = 0;
        if (error === null) {
          this.#room = 'alpnProtocol' in socket && socket.alpnProtocol === 'h2' ? MAX_STREAMS : 1;
          const { remoteAddress } = socket;
          this.address = remoteAddress !== undefined && leadsTo(remoteAddress) ? remoteAddress : undefined;
        }
        done(...made);
      });
    };
    this.#client = new Client(origin, { ...client, connect: make });
    mendParsers(this.#client);
    mendResets(this.#client);
    this.#pulse = new Pulse(this.#client, () => !this.isAtRest);
    this.#client.on('connect', onMade);
    this.#client.on('connectionError', onMade);
    this.#client.on('disconnect', (_origin, _targets, error) => {
      if (isGoAway(error)) this.goAways += 1;
    });
  }

  get hasRoom(): boolean {
    return this.#requests < this.#room;
  }

  get isAtRest(): boolean {
    return this.#requests === 0;
  }

  /** It has done enough, or may be dead: only where there is no other does it get another request. */
  get isWornOut(): boolean {
    return this.#pulse.isDoubtful || this.#resets >= MAX_RESETS || this.#sent >= MAX_REQUESTS;
  }

  send(errand: Errand): void {
    const { options, attempt } = errand;
    this.#requests += 1;
    this.#sent += 1;
    errand.shared = this;
    if (fitsHttp2(options.path, options.headers)) this.#client.dispatch(options, attempt);
    else attempt.onResponseError(undefined, new errors.InvalidArgumentError('its headers are too large for HTTP/2'));
  }

  release({ attempt }: Errand): void {
    this.#requests -= 1;
    if (attempt.sent && !attempt.isComplete) this.#resets += 1;
  }

  destroy(): Promise<void> {
    return this.#client.destroy();
  }
}
