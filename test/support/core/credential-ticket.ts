import { Ticket } from '../../../src/core/admission/ticket.ts';
import { hashToNumber } from '../../../src/core/quota/requester.ts';

/** A ticket of a request with this credential, and with this path if it is set. */
export class CredentialTicket extends Ticket {
  readonly #credential: string;
  requestPath: string | undefined = undefined;

  constructor(shown: string, ...parts: ConstructorParameters<typeof Ticket>) {
    super(...parts);
    this.#credential = shown;
  }

  protected override path(): string | undefined {
    return this.requestPath;
  }

  protected override credential(): number {
    return hashToNumber(this.#credential);
  }
}
