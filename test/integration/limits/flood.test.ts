import { expect, onTestFinished, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import type { Received } from '../../support/clients/send.ts';
import { headerOf, keepAlive, send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';

const clients = (state: string) => `tidegate_clients_by_state{state="${state}"}`;
const transition = (from: string, to: string) => `tidegate_client_transitions_total{from="${from}",to="${to}"}`;

test(
  'cuts a flooding client, cools it down and restores it in steps; nine others are unaffected',
  AGAIN_IF_STALLED,
  async () => {
    const stalls = watchStalls();
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await startTidegate(`
upstreams:
  api:
    url: "${upstream.url}"
    rateLimit: {initialRate: 50/s, maxRate: 50/s}
clients: {key: ["header:x-api-key"]}
`);
    const agent = keepAlive();
    const ask = (key: string) => send(gate.url, '/', { headers: ['X-Api-Key', key], agent });

    // Nine clients send three requests a second each; the tenth three hundred, whatever its responses.
    const floods: Promise<Received>[] = [];
    const flooding = setInterval(() => {
      for (let i = 0; i < 6; i += 1) floods.push(ask('flood'));
    }, 20);
    onTestFinished(() => clearInterval(flooding));
    // For each request, how many others reached the upstream between its start and its arrival.
    const overtaken: number[] = [];
    const calm = async (key: string): Promise<Received[]> => {
      const seen: Received[] = [];
      for (let i = 0; i < 7; i += 1) {
        const before = upstream.hits.length;
        const [answer] = await Promise.all([ask(key), pause(330)]);
        seen.push(answer);
        const since = upstream.hits.slice(before);
        const at = since.findIndex(({ headers }) => headerOf(headers, 'x-api-key') === key);
        if (answer.status === 200) overtaken.push(at);
      }
      return seen;
    };
    const others = await Promise.all(Array.from({ length: 9 }, (_, i) => calm(`calm-${i}`)));
    expect(await gate.metric('tidegate_client_cuts_total')).toBeGreaterThan(0);
    expect(await gate.metric(transition('normal', 'backoff'))).toBe(1);
    expect(await gate.metric('tidegate_client_allowance_ratio{stat="min"}')).toBeLessThan(0.5);
    clearInterval(flooding);
    const refused = (await Promise.all(floods)).filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(floods.length / 2);

    const answers = others.flat();
    const served = answers.filter(({ status }) => status === 200);
    expect(served.length / answers.length).toBeGreaterThanOrEqual(0.98);
    // Twenty-five requests are half a second at the limit’s rate.
    const most = overtaken.toSorted((a, b) => b - a)[Math.floor(served.length / 10)];
    stalls.unlessStalled(() => expect(most).toBeLessThan(25));

    // During cooldown the allowance is constant. Then it grows in steps.
    await eventually(
      () => gate.metric(clients('restoring')),
      (count) => count === 1,
    );
    const allowance = () => gate.metric('tidegate_client_allowance_ratio{stat="min"}');
    const first = await allowance();
    expect(first).toBeLessThan(0.6);
    await pause(600);
    const second = await allowance();
    expect(second).toBeGreaterThan(first);
    await pause(600);
    expect(await allowance()).toBeGreaterThan(second);
    // On a slow machine the cooldown is over before the test observes it.
    const restored = await Promise.all(
      ['cooldown', 'backoff'].map((from) => gate.metric(transition(from, 'restoring'))),
    );
    expect(Math.max(...restored)).toBeGreaterThanOrEqual(1);
    expect(await gate.metric(clients('normal'))).toBe(9);
    expect((await ask('flood')).status).toBe(200);
  },
);
