import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { KeyOwner } from '../../core/idempotency/key-owner.ts';
import type { Delivery } from '../../core/delivery/delivery.ts';
import type { DueDelivery } from '../../core/delivery/delivery-store.ts';
import type { Millis } from '../../core/scalars.ts';
import { joinHeaders } from '../headers/join-headers.ts';
import type { BodyListener, HttpServerRequest } from '../server/server-request.ts';
import { withoutQuery } from '../server/server-request.ts';
import { signStandardWebhook, withoutStandardHeaders } from '../webhooks/sign-standard-webhook.ts';

/** Identifies a message, the same at each attempt. A sender that follows Standard Webhooks sets it. A write has its idempotency key. */
const WEBHOOK_ID = 'webhook-id';

export interface AttemptSignature {
  /** One signature by each. */
  readonly keys: readonly Buffer[];
  /** When the attempt begins, in milliseconds of the epoch. */
  readonly at: Millis;
}

/** One attempt of a delivery, as a request that has arrived in full. */
export class DeliveryRequest extends Readable implements HttpServerRequest {
  readonly verb: string;
  target: string;
  expectsContinue = false;
  readonly httpVersion = '1.1';
  headers: IncomingHttpHeaders;
  rawHeaders: readonly string[];
  readonly hasBody: boolean;
  readonly addedHeaders: readonly string[];
  readonly delivery: string;
  /** See `DeliveryMessage`. */
  readonly keyOwner: KeyOwner | undefined;
  readonly upstreamKey: string | undefined;
  readonly complete = true;
  readonly socket: HttpServerRequest['socket'];
  bodyListener: BodyListener | undefined;
  readonly #body: Buffer;
  #isTaken = false;

  /** @param signature replaces the one of the sender; undefined: that one stays */
  constructor({ delivery, message }: DueDelivery, signature: AttemptSignature | undefined) {
    super();
    this.delivery = delivery.id;
    this.keyOwner = message.keyOwner;
    this.upstreamKey = message.upstreamKey;
    this.verb = message.method;
    this.target = message.target;
    this.rawHeaders = signature === undefined ? message.headers : withoutStandardHeaders(message.headers);
    this.addedHeaders = [
      ...['Tidegate-Delivery-Id', delivery.id, 'Tidegate-Delivery-Attempt', String(delivery.attempts + 1)],
      ...(signature === undefined ? this.#missingId(delivery) : makeSignature(delivery.id, message.body, signature)),
    ];
    this.headers = joinHeaders(this.rawHeaders);
    this.socket = { remoteAddress: message.peer };
    this.#body = message.body;
    this.hasBody = message.body.length > 0;
  }

  #missingId({ id, kind }: Delivery): string[] {
    const hasId =
      kind === 'write' || this.rawHeaders.some((name, i) => i % 2 === 0 && name.toLowerCase() === WEBHOOK_ID);
    return hasId ? [] : [WEBHOOK_ID, id];
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

function makeSignature(id: string, body: Buffer, { keys, at }: AttemptSignature): string[] {
  return signStandardWebhook(keys, { id, body, at });
}
