import type { ClientGroup } from '../../../src/simulator/scenario.ts';

/** Ten clients that send 20/s each and ignore Retry-After. */
export const TEN_CLIENTS: ClientGroup = {
  name: 'client',
  count: 10,
  rate: 20,
  weight: 1,
  from: 0,
  to: Number.POSITIVE_INFINITY,
  steps: [],
  honoursRetryAfter: false,
  method: 'GET',
  path: '/',
  limits: [],
  keyed: false,
};
