import { Ticket } from '../../../src/core/admission/ticket.ts';
import { hashToNumber } from '../../../src/core/quota/requester.ts';

/** A ticket of a request with this credential. */
export class CredentialTicket extends Ticket {
  readonly #credential: string;

  constructor(shown: string, ...parts: ConstructorParameters<typeof Ticket>) {
    super(...parts);
    this.#credential = shown;
  }

  protected override credential(): number {
    return hashToNumber(this.#credential);
  }
}
