import { expect, test } from 'vitest';
import type { Case } from '../support/differential/cases.ts';
import { drawCases } from '../support/differential/cases.ts';
import { differencesOfRequests, differencesOfResponses } from '../support/differential/differences.ts';
import { Client, startUpstream } from '../support/differential/wire.ts';
import { startTidegate } from '../support/tidegate.ts';

const SEED = 20_261_121;
const COUNT = 600;
/** Cases under way at a time. */
const LANES = 4;

/** Answers that the policy acts upon go through a proxy that only observes; it forwards all of them, at once. */
const actedUpon = ({ answer }: Case) =>
  [408, 409, 425, 429].includes(answer.status) ||
  answer.status >= 500 ||
  answer.fields.some(([name]) => /^(?:retry-after|x-ratelimit-)/i.test(name));

test(`${COUNT} messages pass as they would without a proxy`, async () => {
  const cases = drawCases(COUNT, SEED);
  const upstream = await startUpstream(cases);
  const config = `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`;
  const enforcing = await startTidegate(config);
  const observing = await startTidegate(`mode: observe\n${config}`);
  const found: string[] = [];

  const compare = async (each: Case, number: number, direct: Client, proxied: Client): Promise<string[]> => {
    const straight = await direct.ask(each, number);
    const passed = await proxied.ask(each, number);
    if (/^proxy-status/im.test(passed.final.fields.join('\n'))) return [`refused: ${passed.final.body}`];
    const [first, second, ...more] = upstream.received(number);
    if (first === undefined || second === undefined || more.length > 0) {
      return [`reached the upstream ${upstream.received(number).length} times: ${JSON.stringify(passed.final)}`];
    }
    return [...differencesOfRequests(first, second), ...differencesOfResponses(straight, passed, each.version)];
  };
  const runLane = async (lane: number): Promise<void> => {
    const direct = new Client(upstream.url);
    const [enforced, observed] = [new Client(enforcing.url), new Client(observing.url)];
    for (let number = lane; number < cases.length; number += LANES) {
      const each = cases[number]!;
      const name = `case ${number} of seed ${SEED}, ${each.method} ${each.target} → ${each.answer.status}`;
      const through = actedUpon(each) ? observed : enforced;
      const differences = await compare(each, number, direct, through).catch((error: Error) => [error.message]);
      for (const difference of differences) found.push(`${name}: ${difference}`);
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(lane)));
  expect(found).toEqual([]);
}, 60_000);
