import type { Delivery } from '../../core/delivery/delivery.ts';
import type { DeliveryStore } from '../../core/delivery/delivery-store.ts';
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
import { DELIVERIES_PATH, describeDelivery } from './delivery-status.ts';

/** Shows clients the state of the deliveries that they have sent. */
export class DeliveryStatusEndpoint {
  readonly #store: DeliveryStore;
  readonly #rejections: Pick<Rejections, 'reject'>;
  readonly #via: string;

  constructor(store: DeliveryStore, rejections: Pick<Rejections, 'reject'>, via: string) {
    this.#store = store;
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
    this.#store.find(request.path.slice(DELIVERIES_PATH.length)).then(
      (delivery) => this.#respond(request, response, delivery, client.hash),
      () => this.#rejections.reject(request, response, STATE_UNAVAILABLE),
    );
    return true;
  }

  #respond(
    request: HttpServerRequest,
    response: HttpServerResponse,
    delivery: Delivery | undefined,
    client: string,
  ): void {
    // The same for one that another client has sent: its id would be confirmed otherwise.
    if (delivery?.owner !== client) return this.#rejections.reject(request, response, NO_DELIVERY);
    const headers = ['Content-Type', 'application/json', 'Via', this.#via, 'Cache-Control', 'no-store'];
    writeOwnBody(response, 200, headers, JSON.stringify(describeDelivery(delivery)));
    endResponse(response, request);
  }
}

const METHOD_NOT_ALLOWED: Problem = requestProblem(405, 'Method not allowed', 'Read the state with GET.', 'method');
const NO_DELIVERY: Problem = requestProblem(
  404,
  'Not found',
  'There is no such delivery of this client, or it ended so long ago that it is forgotten.',
  'no_delivery',
);
