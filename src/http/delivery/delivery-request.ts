import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { DueDelivery } from '../../core/delivery/delivery-store.ts';
import { joinHeaders } from '../headers/join-headers.ts';
import type { BodyListener, HttpServerRequest } from '../server/server-request.ts';
import { withoutQuery } from '../server/server-request.ts';

/** Identifies the delivery, equally at each attempt. A sender that follows Standard Webhooks has set it already. */
const WEBHOOK_ID = 'webhook-id';

/** One attempt of a delivery, as a request that has arrived in full. */
export class DeliveryRequest extends Readable implements HttpServerRequest {
  readonly verb: string;
  target: string;
  expectsContinue = false;
  readonly httpVersion = '1.1';
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly hasBody: boolean;
  readonly addedHeaders: readonly string[];
  readonly complete = true;
  readonly socket: HttpServerRequest['socket'];
  bodyListener: BodyListener | undefined;
  readonly #body: Buffer;
  #isTaken = false;

  constructor({ delivery, message }: DueDelivery) {
    super();
    this.verb = message.method;
    this.target = message.target;
    const hasId = message.headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === WEBHOOK_ID);
    this.addedHeaders = [
      ...['Tidegate-Delivery-Id', delivery.id, 'Tidegate-Delivery-Attempt', String(delivery.attempts + 1)],
      ...(hasId ? [] : [WEBHOOK_ID, delivery.id]),
    ];
    this.rawHeaders = message.headers;
    this.headers = joinHeaders(this.rawHeaders);
    this.socket = { remoteAddress: message.peer };
    this.#body = message.body;
    this.hasBody = message.body.length > 0;
  }

  get path(): string {
    return withoutQuery(this.target);
  }

  takeArrivedBody(): Buffer | undefined {
    if (this.#isTaken) return undefined;
    this.#isTaken = true;
    return this.#body;
  }

  override _read(): void {
    if (!this.#isTaken && this.hasBody) this.push(this.#body);
    this.#isTaken = true;
    this.push(null);
  }
}
