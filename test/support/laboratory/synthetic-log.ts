/** Logs of an upstream whose limit is known: the model that the practice upstream runs, in virtual time. */
import type { Millis, Random } from '../../../src/core/scalars.ts';
import { LogSurvey } from '../../../src/laboratory/fit/log-survey.ts';
import type { LogSegment } from '../../../src/laboratory/fit/log-excerpt.ts';
import type { LoggedRequest } from '../../../src/laboratory/fit/logged-request.ts';
import { classifyStatus, endOfAnswer, SINGLE_ATTEMPT } from '../../../src/laboratory/fit/logged-request.ts';
import { EventQueue } from '../../../src/simulator/engine/event-queue.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { UpstreamSpec } from '../../../src/simulator/upstream/upstream-model.ts';
import { UpstreamModel } from '../../../src/simulator/upstream/upstream-model.ts';

export interface SyntheticTraffic {
  /** Mean requests a second. */
  readonly demand: number;
  readonly requests: number;
  /** `bursty`: an interrupted Poisson process, three times the demand for a third of the time, in spells of about `spell`. */
  readonly arrivals: 'poisson' | 'bursty';
  /** In ms; 2000 when absent. */
  readonly spell?: Millis;
  readonly seed: number;
}

/** A response, as an upstream's log has it: in whole milliseconds. */
export interface SyntheticResponse {
  readonly at: Millis;
  readonly took: Millis;
  readonly status: number;
}

/** Responses by arrival. The traffic runs for a while before the log begins. */
export function makeSyntheticLog(upstream: UpstreamSpec, traffic: SyntheticTraffic): SyntheticResponse[] {
  const random = seededRandom(traffic.seed);
  const model = new UpstreamModel(upstream);
  const station = model.model.station;
  const ends = new EventQueue<null>();
  const nextArrival = makeArrivals(traffic, random);
  const warmUp = Math.ceil(traffic.requests * (0.1 + 0.1 * random()));
  const responses: { at: Millis; took: Millis; status: number }[] = [];
  let now = 0;
  for (let i = 0; i < warmUp + traffic.requests; i += 1) {
    now = nextArrival(now);
    while (ends.nextAt <= now) {
      const at = ends.nextAt;
      ends.pop();
      model.release(at);
    }
    const decision = model.decide(now, random);
    const response = { at: Math.round(now), took: 0, status: decision.kind === 'serve' ? 200 : 429 };
    responses.push(response);
    if (decision.kind === 'throttle') response.took = Math.round(decision.latency);
    if (decision.kind !== 'serve') continue;
    const began = now;
    const onServed = (at: Millis): void => {
      response.took = Math.round(at) - response.at;
    };
    if (station === undefined) {
      ends.push(began + decision.latency, null);
      onServed(began + decision.latency);
    } else {
      station.arrive({ work: decision.latency, poolWork: 0, onServed }, began);
    }
  }
  station?.advance(now + 1e9);
  return responses.slice(warmUp);
}

function makeArrivals({ demand, arrivals, spell = 2000 }: SyntheticTraffic, random: Random): (now: Millis) => Millis {
  const draw = (mean: Millis): Millis => -mean * Math.log(1 - random());
  if (arrivals === 'poisson') return (now) => now + draw(1000 / demand);
  let busyUntil = draw(spell);
  return (now) => {
    let at = now + draw(1000 / (3 * demand));
    while (at > busyUntil) {
      const idle = draw(2 * spell);
      at += idle;
      busyUntil += idle + draw(spell);
    }
    return at;
  };
}

export function toLogged({ at, took, status }: SyntheticResponse, i: number): LoggedRequest {
  const answer = classifyStatus(status);
  return {
    line: i + 1,
    at,
    client: 'a',
    end: endOfAnswer(answer),
    attempts: SINGLE_ATTEMPT[answer],
    upstream: '',
    method: 'GET',
    path: '/',
    service: took,
    took,
  };
}

export function surveySynthetic(log: readonly SyntheticResponse[]): readonly LogSegment[] {
  const survey = new LogSurvey();
  const origin = log[0]?.at ?? 0;
  for (const [i, response] of log.entries()) survey.add(toLogged(response, i), response.at - origin);
  return survey.segments();
}
