import type { Millis } from '../scalars.ts';
import type { EnforcementMode } from './gate-decision.ts';

/** What is known of a request, beyond its client and its limits, when its ticket is made. */
export interface TicketOptions {
  /** When the head of the request had been read; by default when the ticket asks for admission. */
  readonly arrivedAt?: Millis | undefined;
  /** The hashed address, if the client's key is nested within it; undefined for a client that is identified by address. */
  readonly addressGroup?: string | undefined;
  /** The requester sends the request itself: it uses none of our connections, and its response is not seen here. */
  readonly isSentExternally?: boolean;
  /** `enforce` by default. */
  readonly mode?: EnforcementMode | undefined;
}
