import type { ClientGroup } from '../../src/simulator/scenario.ts';

/** Ten clients that ask for 20/s each and do not listen. */
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
