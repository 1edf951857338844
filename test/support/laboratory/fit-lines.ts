import { runToCompletion } from '../../../src/laboratory/experiment.ts';
import { DirectClients, NO_RETRIES } from '../../../src/laboratory/fit/direct-clients.ts';
import type { FitResult } from '../../../src/laboratory/fit/fit-experiment.ts';
import { FitExperiment } from '../../../src/laboratory/fit/fit-experiment.ts';
import type { KnownLimit } from '../../../src/laboratory/fit/infer-bucket.ts';
import type { LoggedRequest } from '../../../src/laboratory/fit/logged-request.ts';

/** Fits an upstream to these lines, and replays them with clients that do not retry. */
export function fitLines(lines: readonly LoggedRequest[], known: KnownLimit): FitResult {
  return runToCompletion(
    new FitExperiment({
      openLog: () => {
        let isRead = false;
        return {
          progress: 0,
          skipped: 0,
          firstSkipped: undefined,
          aside: 0,
          read() {
            const some = isRead ? undefined : lines;
            isRead = true;
            return some;
          },
        };
      },
      known,
      candidates: (upstream) => [
        new DirectClients({ name: NO_RETRIES, backOff: undefined, attempts: 1, upstream, seed: 1 }),
      ],
    }),
  );
}
