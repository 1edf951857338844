import type { buildConnector } from 'undici';
import { Client } from 'undici';
import { MAX_STREAMS } from '../config/listen-schema.ts';
import type { ConnectionOptions, Errand } from './connection.ts';
import type { Connections } from './endpoints.ts';
import { isGoAway } from './failure.ts';
import { mendParsers } from './mend-parser.ts';

export interface SharedConnectionsOptions extends Pick<ConnectionOptions, 'origin' | 'client' | 'connect' | 'leadsTo'> {
  /** Connections, at most. */
  readonly most: number;
  /** There is room for a request again. */
  readonly onFree: () => void;
}

/**
 * The connections to one endpoint that HTTP/2 is offered to. Each carries up to a hundred requests; the first with room is
 * used, so that those too many become idle and end. While it is not known what the endpoint speaks, requests wait for the
 * first connection; one that turns out to speak HTTP/1.1 carries one at a time, and more are made.
 */
export class SharedConnections implements Connections {
  readonly #options: SharedConnectionsOptions;
  #all: SharedConnection[] = [];
  readonly #waiting = new Set<Errand>();

  constructor(options: SharedConnectionsOptions) {
    this.#options = options;
  }

  send(errand: Errand): void {
    const connection = this.#find();
    if (connection !== undefined) return connection.send(errand);
    errand.hadToWait = !this.#all.some(({ isBeingMade }) => isBeingMade);
    this.#waiting.add(errand);
  }

  over(errand: Errand): void {
    this.#waiting.delete(errand);
    const connection = this.#all.find((each) => each === errand.shared);
    connection?.release();
    if (connection?.isAtRest === true && !this.#leadsOn(connection)) this.#drop(connection);
    this.#pump();
    this.#options.onFree();
  }

  /** Gives no more requests to connections to addresses that the name has left, and ends those that have none. */
  leaveOld(): void {
    for (const connection of [...this.#all]) {
      if (connection.isAtRest && !this.#leadsOn(connection)) this.#drop(connection);
    }
  }

  async destroy(): Promise<void> {
    this.#waiting.clear();
    await Promise.all(this.#all.map((connection) => connection.destroy()));
  }

  #find(): SharedConnection | undefined {
    const found = this.#all.find((connection) => connection.hasRoom && this.#leadsOn(connection));
    if (found !== undefined) return found;
    return this.#all.some(({ isBeingMade }) => isBeingMade) ? undefined : this.#open();
  }

  #open(): SharedConnection | undefined {
    if (this.#all.length >= this.#options.most) return undefined;
    const connection = new SharedConnection(this.#options, this.#pump);
    this.#all.push(connection);
    return connection;
  }

  readonly #pump = (): void => {
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
  #requests = 0;
  /** What it can carry: one until it is made. */
  #room = 1;

  constructor({ origin, client, connect, leadsTo }: SharedConnectionsOptions, onMade: () => void) {
    const make: ReturnType<typeof buildConnector> = (options, done) => {
      this.isBeingMade = true;
      // The name to ask for is the connector's own: see `SendOptions.servername`.
      connect({ ...options, servername: '' }, (...made) => {
        const [error, socket] = made;
        this.isBeingMade = false;
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

  send(errand: Errand): void {
    this.#requests += 1;
    errand.shared = this;
    this.#client.dispatch(errand.options, errand.attempt);
  }

  release(): void {
    this.#requests -= 1;
  }

  destroy(): Promise<void> {
    return this.#client.destroy();
  }
}
