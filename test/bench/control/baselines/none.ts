import { ControllerStore, ForgetfulClients } from '../controller-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';

/** No control: every request is sent at once, and retried as configured. */
export const NONE: Controller = {
  name: 'none',
  makeStore: ({ policy }, _random, listen) =>
    new ControllerStore({
      policy,
      listen,
      makeMeter: () => new PassingMeter(),
      clients: new ForgetfulClients(100_000, listen),
    }),
};
