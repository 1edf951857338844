import { ChosenStore, ForgetfulClients } from '../chosen-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';

/** No control: everything leaves at once, and is retried as configured. */
export const NONE: Controller = {
  name: 'none',
  makeStore: ({ policy }, _random, listen) =>
    new ChosenStore({
      policy,
      listen,
      makeMeter: () => new PassingMeter(),
      clients: new ForgetfulClients(100_000, listen),
    }),
};
