import type { Delivery } from '../../core/delivery/delivery.ts';
import type { DeliveryStore } from '../../core/delivery/delivery-store.ts';
import type { Millis } from '../../core/scalars.ts';
import { clientAddress, socketAddress } from '../request/client-address.ts';
import type { Snapshot } from '../request/snapshot-types.ts';
import { requestProblem } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import type { Rejections } from '../response/rejections.ts';
import { endResponse } from '../server/end-response.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import { writeOwnBody } from '../server/write-response.ts';
import { STATE_UNAVAILABLE } from './delivery-problems.ts';
import { DELIVERIES_PATH, type DeliveryStatus, pollAfterSeconds } from './delivery-status.ts';
import { readDeliveryStatus } from './read-delivery-status.ts';

interface EndpointParts {
  readonly store: DeliveryStore;
  readonly wallClock: () => Millis;
}

interface FoundDelivery {
  readonly delivery: Delivery;
  readonly status: DeliveryStatus;
}

/** Shows clients the state of the deliveries that they have sent. */
export class DeliveryStatusEndpoint {
  readonly #store: DeliveryStore;
  readonly #wallClock: () => Millis;
  readonly #rejections: Pick<Rejections, 'reject'>;
  readonly #via: string;

  constructor({ store, wallClock }: EndpointParts, rejections: Pick<Rejections, 'reject'>, via: string) {
    this.#store = store;
    this.#wallClock = wallClock;
    this.#rejections = rejections;
    this.#via = via;
  }

  /** Responds if the request is one for the state of a delivery. Returns whether it is. */
  handle(request: HttpServerRequest, response: HttpServerResponse, snapshot: Snapshot): boolean {
    if (!request.path.startsWith(DELIVERIES_PATH)) return false;
    if (request.verb !== 'GET' && request.verb !== 'HEAD') {
      this.#rejections.reject(request, response, METHOD_NOT_ALLOWED);
      return true;
    }
    const peer = socketAddress(request.socket.remoteAddress);
    const client = snapshot.identifyClient(request, clientAddress(request, peer, snapshot.isTrustedProxy));
    this.#find(request.path.slice(DELIVERIES_PATH.length), client.hash).then(
      (found) => this.#respond(request, response, found),
      () => this.#rejections.reject(request, response, STATE_UNAVAILABLE),
    );
    return true;
  }

  /** Undefined also for one that another client has sent: its id would be confirmed otherwise. */
  async #find(id: string, client: string): Promise<FoundDelivery | undefined> {
    const delivery = await this.#store.find(id);
    if (delivery?.owner !== client) return undefined;
    return { delivery, status: await readDeliveryStatus(this.#store, delivery) };
  }

  #respond(request: HttpServerRequest, response: HttpServerResponse, found: FoundDelivery | undefined): void {
    if (found === undefined) return this.#rejections.reject(request, response, NO_DELIVERY);
    const { delivery, status } = found;
    const pollAfter = pollAfterSeconds(delivery, this.#wallClock());
    const headers = ['Content-Type', 'application/json', 'Via', this.#via, 'Cache-Control', 'no-store'];
    if (pollAfter !== undefined) headers.push('Retry-After', String(pollAfter));
    writeOwnBody(response, 200, headers, JSON.stringify(status));
    endResponse(response, request);
  }
}

const METHOD_NOT_ALLOWED: Problem = requestProblem(405, 'Method not allowed', 'Read the state with GET.', 'method');
const NO_DELIVERY: Problem = requestProblem(
  404,
  'Not found',
  'This client has no delivery with this id, or it ended so long ago that it is no longer stored.',
  'no_delivery',
);
