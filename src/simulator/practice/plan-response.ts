import type { Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { HintStyle } from '../upstream/hint-style.ts';
import type { Conduct } from '../upstream/upstream-model.ts';
import type { Act, Ending } from './response-plan.ts';
import { answerWith } from './response-plan.ts';
import { hintHeaders } from './hint-headers.ts';
import type { AfterCharge } from './practice-spec.ts';

const SERVED: Act = { delay: 0, works: true, ending: answerWith(200) };
const BROKEN: Act = { delay: 0, works: false, ending: { kind: 'reset' } };
const DOWN: Act = { delay: 0, works: false, ending: answerWith(503) };

const REASON_HEADER = 'Stripe-Rate-Limited-Reason';

/** What an upstream's conduct is on a socket. @param reasonHeader gives the reason of a refusal */
export function chooseAct(conduct: Conduct, style: HintStyle, epoch: Millis, reasonHeader = REASON_HEADER): Act {
  if (conduct.kind === 'down') return conduct.how === '503' ? DOWN : BROKEN;
  const { latency: delay, quota } = conduct;
  const headers = hintHeaders(style, conduct.kind === 'throttle' ? conduct.wait : undefined, quota, epoch);
  switch (conduct.kind) {
    case 'serve':
      if (delay === 0 && headers.length === 0) return SERVED;
      return { delay, works: true, ending: answerWith(200, headers) };
    case 'fail':
      return { delay, works: false, ending: answerWith(conduct.status, headers) };
    case 'throttle':
      return {
        delay,
        works: false,
        ending: answerWith(429, conduct.reason === undefined ? headers : [...headers, reasonHeader, conduct.reason]),
      };
  }
}

/** The same act, but what the client hears of its charge is left to chance. */
export function spoilCharge(act: Act, chances: AfterCharge, random: Random): Act {
  const { reset = 0, hang = 0, error = 0 } = chances;
  const u = random();
  const ending: Ending | undefined =
    u < reset
      ? { kind: 'reset' }
      : u < reset + hang
        ? { kind: 'hang' }
        : u < reset + hang + error
          ? answerWith(500)
          : undefined;
  return ending === undefined ? act : { ...act, ending };
}
