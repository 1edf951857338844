/** The oracle over sockets: real requests, a real upstream with a ledger, and each response checked when it arrives. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { classifyWrite } from '../../../src/core/idempotency/write-outcome.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import type { ReportedOutcome } from '../../support/oracle/reported-outcome.ts';
import { contradiction, outcomeOfAnswer } from '../../support/oracle/reported-outcome.ts';
import { UpstreamLedger } from '../../support/oracle/upstream-ledger.ts';
import { EventLoopLag } from '../../support/oracle/event-loop-lag.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const INTENTS = Number(process.env['TIDEGATE_ORACLE_SOCKETS'] ?? 1200);
const AT_A_TIME = 30;
/** For each kind of response. A blocked upstream has most requests rejected for a while: the test continues. */
const ANSWERS_OF_A_KIND = 21;
const KINDS = ['done', 'declined', 'unknown', 'not done'] as const;
/** Of the 300 ms between a response in time and the end of an attempt. */
const LAG_ALLOWED = 100;
const METHODS = ['POST', 'POST', 'PATCH', 'PUT', 'DELETE'];

interface Intent {
  readonly name: string;
  readonly method: string;
  readonly history: string[];
  /** An attempt since the last response that reached the client left the write unresolved. */
  isOpen: boolean;
  isKnown: boolean;
}

test.each(['wait', 'refuse', 'pass'])(
  'reports the true outcome of each intent (concurrent: %s)',
  async (concurrent) => {
    const random = seededRandom(20_261_125);
    const ledger = new UpstreamLedger(Number.POSITIVE_INFINITY, random);
    const intents = new Map<string, Intent>();
    const wrong: string[] = [];
    const counts: Partial<Record<ReportedOutcome, number>> = {};
    const watch = new EventLoopLag();

    const upstream = await startHttpUpstream((_n, response, hit) => {
      const key = hit.headers[hit.headers.findIndex((name) => name.toLowerCase() === 'idempotency-key') + 1] ?? '';
      const intent = intents.get(key);
      if (intent === undefined) return void response.writeHead(500).end();
      const isRepeatable = hit.method === 'PUT' || hit.method === 'DELETE';
      const { outcome, after } = ledger.attempt(key, key, isRepeatable, 600, hit.at);
      intent.history.push(outcome.kind === 'response' ? String(outcome.status) : outcome.reason);
      // A failure to connect cannot occur on an open connection: to the proxy it broke.
      const seen: AttemptOutcome = outcome.kind === 'error' ? { ...outcome, sent: true } : outcome;
      if (classifyWrite({ method: hit.method, keyed: true }, seen) === 'may_have_taken_effect') intent.isOpen = true;
      setTimeout(() => {
        // A slow machine may have delayed the response to the end of the attempt.
        if (performance.now() - hit.at > 300) intent.isOpen = true;
        if (outcome.kind === 'error') return void response.destroy();
        const { retryAfterMs } = outcome.hints;
        if (retryAfterMs !== undefined) response.setHeader('Retry-After-Ms', String(retryAfterMs));
        if (outcome.isReplayed === true) response.setHeader('Idempotent-Replayed', 'true');
        response.writeHead(outcome.status).end('{}');
      }, after);
    });
    const gate = await startTidegate(`
upstreams:
  api:
    url: ${upstream.url}
    timeout: 4s
    perTryTimeout: 600ms
    queue: {maxWait: 300ms}
    idempotency: {concurrent: ${concurrent}, ttl: 24h}
    retry:
      attempts: 3
      retryOn: [5xx, "429", connect-failure, reset, timeout, lock]
      budget: {ratio: 1, burst: 10000}
      backOff: {strategy: fixed, baseInterval: 5ms}
`);

    const ask = async (intent: Intent): Promise<ReportedOutcome> => {
      const headers = ['Idempotency-Key', intent.name, 'Authorization', `Bearer ${random()}`];
      const answer = await send(gate.url, '/charges', { method: intent.method, headers, body: intent.name });
      return outcomeOfAnswer(answer.status, answer.header, answer.body.toString());
    };
    /** The order of responses to concurrent requests is unknown, so they are checked together. */
    const judge = (intent: Intent, answers: readonly ReportedOutcome[]): void => {
      // All of it runs in one process: if that stalled, a response in time may have come after the end of its attempt.
      if (watch.worstLag() > LAG_ALLOWED) intent.isOpen = true;
      if (answers.some((outcome) => outcome === 'done' || outcome === 'declined')) intent.isKnown = true;
      for (const outcome of answers) {
        counts[outcome] = (counts[outcome] ?? 0) + 1;
        intent.history.push(outcome);
        const isOpen = intent.isOpen || answers.length > 1;
        // A rejection from before the other request was sent was true; the other response covers the rest.
        const isKnown = intent.isKnown || answers.includes('unknown');
        const isInUse = answers.length > 1;
        const lie = contradiction(outcome, { times: ledger.times(intent.name), isOpen, isKnown, isInUse });
        if (lie !== undefined) wrong.push(`${intent.method} ${intent.name}: ${lie}: ${intent.history.join(', ')}`);
      }
      // A decline answers the attempts before it: beside an unknown outcome, the order is unknown.
      const isResolved = answers.includes('done') || answers.every((outcome) => outcome === 'declined');
      if (isResolved) intent.isOpen = false;
    };

    let next = 0;
    const isEnough = (): boolean =>
      next >= INTENTS && KINDS.every((outcome) => (counts[outcome] ?? 0) >= ANSWERS_OF_A_KIND);
    const client = async (): Promise<void> => {
      while (!isEnough()) {
        const number = next++;
        const method = METHODS[Math.floor(METHODS.length * random())] ?? 'POST';
        const intent: Intent = { name: `intent-${number}`, method, history: [], isOpen: false, isKnown: false };
        intents.set(intent.name, intent);
        for (let tries = 1 + Math.floor(4 * random()); tries > 0; tries -= 1) {
          const together = random() < 0.2 ? [ask(intent), ask(intent)] : [ask(intent)];
          judge(intent, await Promise.all(together));
          await sleep(20 * random());
        }
        intents.delete(intent.name);
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, client));

    expect([wrong.length, wrong.slice(0, 5)]).toEqual([0, []]);
  },
  120_000,
);
