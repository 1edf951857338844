/** The oracle over sockets: real requests, a real upstream with a ledger, and each answer judged when it comes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Outcome } from '../../src/core/exchange/attempt-outcome.ts';
import { classifyWrite } from '../../src/core/idempotency/write-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { startHttpUpstream } from '../support/http-upstream.ts';
import type { Told } from '../support/oracle/judge.ts';
import { contradiction, toldByAnswer } from '../support/oracle/judge.ts';
import { Ledger } from '../support/oracle/ledger.ts';
import { LoopWatch } from '../support/oracle/loop-watch.ts';
import { send } from '../support/send.ts';
import { startTidegate } from '../support/tidegate.ts';

const INTENTS = Number(process.env['TIDEGATE_ORACLE_SOCKETS'] ?? 1200);
const AT_A_TIME = 30;
/** Of each kind of answer. An upstream that is blocked for a while has most requests refused meanwhile: the test goes on. */
const ANSWERS_OF_A_KIND = 21;
const KINDS = ['done', 'declined', 'unknown', 'not done'] as const;
/** Of the 300 ms between an answer in time and the end of an attempt. */
const LAG_ALLOWED = 100;
const METHODS = ['POST', 'POST', 'PATCH', 'PUT', 'DELETE'];

interface Intent {
  readonly name: string;
  readonly method: string;
  readonly story: string[];
  /** An attempt has left it open, since the last answer to it that its client has. */
  isOpen: boolean;
  isKnown: boolean;
}

test.each(['wait', 'refuse', 'pass'])(
  'what is told of each intent is true (concurrent: %s)',
  async (concurrent) => {
    const random = seededRandom(20_261_125);
    const ledger = new Ledger(Number.POSITIVE_INFINITY, random);
    const intents = new Map<string, Intent>();
    const wrong: string[] = [];
    const counts: Partial<Record<Told, number>> = {};
    const watch = new LoopWatch();

    const upstream = await startHttpUpstream((_n, response, hit) => {
      const key = hit.headers[hit.headers.findIndex((name) => name.toLowerCase() === 'idempotency-key') + 1] ?? '';
      const intent = intents.get(key);
      if (intent === undefined) return void response.writeHead(500).end();
      const isRepeatable = hit.method === 'PUT' || hit.method === 'DELETE';
      const { outcome, after } = ledger.attempt(key, key, isRepeatable, 600, hit.at);
      intent.story.push(outcome.kind === 'response' ? String(outcome.status) : outcome.reason);
      // That no connection was made cannot be said by who has one: to the proxy it broke.
      const seen: Outcome = outcome.kind === 'error' ? { ...outcome, sent: true } : outcome;
      if (classifyWrite(seen) === 'may_have_happened') intent.isOpen = true;
      setTimeout(() => {
        // A busy machine may have made it wait for as long as an attempt may take.
        if (performance.now() - hit.at > 300) intent.isOpen = true;
        if (outcome.kind === 'error') return void response.destroy();
        const { retryAfter } = outcome.hints;
        if (retryAfter !== undefined) response.setHeader('Retry-After-Ms', String(retryAfter));
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

    const ask = async (intent: Intent): Promise<Told> => {
      const headers = ['Idempotency-Key', intent.name, 'Authorization', `Bearer ${random()}`];
      const answer = await send(gate.url, '/charges', { method: intent.method, headers, body: intent.name });
      return toldByAnswer(answer.status, answer.header, answer.body.toString());
    };
    /** Of answers to requests that were under way together nobody knows which was first: what they say is taken together. */
    const judge = (intent: Intent, answers: readonly Told[]): void => {
      // All of it is one process: where that stood still, an answer in time may have come after the end of its attempt.
      if (watch.worstLag() > LAG_ALLOWED) intent.isOpen = true;
      if (answers.some((told) => told === 'done' || told === 'declined')) intent.isKnown = true;
      for (const told of answers) {
        counts[told] = (counts[told] ?? 0) + 1;
        intent.story.push(told);
        const isOpen = intent.isOpen || answers.length > 1;
        // One that was refused before the other was sent has told the truth; the other tells the rest.
        const isKnown = intent.isKnown || answers.includes('unknown');
        const lie = contradiction(told, { times: ledger.times(intent.name), isOpen, isKnown });
        if (lie !== undefined) wrong.push(`${intent.method} ${intent.name}: ${lie}: ${intent.story.join(', ')}`);
      }
      // A decline is the upstream's answer to the attempts before it: beside an unknown one, nobody knows which was first.
      const isResolved = answers.includes('done') || answers.every((told) => told === 'declined');
      if (isResolved) intent.isOpen = false;
    };

    let next = 0;
    const isEnough = (): boolean => next >= INTENTS && KINDS.every((told) => (counts[told] ?? 0) >= ANSWERS_OF_A_KIND);
    const client = async (): Promise<void> => {
      while (!isEnough()) {
        const number = next++;
        const method = METHODS[Math.floor(METHODS.length * random())] ?? 'POST';
        const intent: Intent = { name: `intent-${number}`, method, story: [], isOpen: false, isKnown: false };
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
