import type { Arrival } from '../request/routed-request.ts';
import { outboundHeaders } from '../request/routed-request.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { Sender } from './upstream-call-owner.ts';
import { withTrace } from '../headers/trace-context.ts';

/** The headers of the sends of one exchange: put together again only where the endpoint changes. */
export class SendHeaders {
  readonly #context: ExchangeContext;
  readonly #arrival: Arrival;
  readonly #sender: Sender;
  #headers: string[] | undefined;
  /** The endpoint that they are for. */
  #authority = '';

  constructor(context: ExchangeContext, arrival: Arrival, sender: Sender) {
    this.#context = context;
    this.#arrival = arrival;
    this.#sender = sender;
  }

  for(authority: string): string[] {
    if (this.#headers === undefined || this.#authority !== authority) {
      this.#headers = outboundHeaders(this.#arrival, authority, this.#context);
      this.#authority = authority;
    }
    const { trace } = this.#sender;
    // Each attempt is a part of the trace of its own.
    return trace === undefined ? this.#headers : withTrace(this.#headers, trace.outgoing);
  }
}
