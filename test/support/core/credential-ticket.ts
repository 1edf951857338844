import { Ticket } from '../../../src/core/admission/ticket.ts';
import { hashToNumber } from '../../../src/core/quota/requester.ts';

/** A ticket of a request with this credential, and with this path and this class of clients if they are set. */
export class CredentialTicket extends Ticket {
  readonly #credential: string;
  requestPath: string | undefined = undefined;
  clientClass: string | undefined = undefined;
  isProven = false;

  constructor(shown: string, ...parts: ConstructorParameters<typeof Ticket>) {
    super(...parts);
    this.#credential = shown;
  }

  override get className(): string | undefined {
    return this.clientClass;
  }

  override get isClientProven(): boolean {
    return this.isProven;
  }

  protected override path(): string | undefined {
    return this.requestPath;
  }

  protected override credential(): number {
    return hashToNumber(this.#credential);
  }
}
