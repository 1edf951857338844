import type { Millis } from '../scalars.ts';
import type { EndpointFailure } from './gate-views.ts';

/** Whether the attempts at an upstream mostly fail, over several endpoints and processes. */
export type UpstreamHealthEvent =
  /** At least half of the last attempts failed. `failure`: the last of them, if it is known. */
  | {
      readonly type: 'upstream-failing';
      readonly upstream: string;
      readonly failedShare: number;
      readonly failure: EndpointFailure | undefined;
    }
  /** Most attempts succeed again, `after` the event above. `failure`: as there. */
  | {
      readonly type: 'upstream-recovered';
      readonly upstream: string;
      readonly after: Millis;
      readonly failure: EndpointFailure | undefined;
    };
