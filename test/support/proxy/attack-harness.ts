/**
 * A Tidegate under attack, with a well-behaved client that must be served throughout. Afterwards nothing
 * may be left of the attack: no request in flight, no byte of a body, no error in the log, no malformed request upstream.
 */
import { expect } from 'vitest';
import { pause } from '../pause.ts';
import { keepAlive, send } from '../clients/send.ts';
import type { AnswerStrictly, StrictUpstream } from '../upstreams/strict-upstream.ts';
import { echo, startStrictUpstream } from '../upstreams/strict-upstream.ts';
import type { Tidegate } from './tidegate.ts';
import { eventually, startTidegate } from './tidegate.ts';

export interface AttackTarget {
  readonly gate: Tidegate;
  readonly upstream: StrictUpstream;
  /** Requests that reached the upstream, without those of the well-behaved client. */
  readonly reached: () => StrictUpstream['requests'];
}

export interface AttackOptions {
  /** The configuration; `{upstream}` stands for the upstream's URL, `{other}` for that of another one, which never fails. */
  readonly yaml?: string;
  readonly answer?: AnswerStrictly;
}

const WELL_BEHAVED_PATH = '/beside/';
const DEFAULT_CONFIG = 'upstreams: {api: {url: "{upstream}", retry: {attempts: 1}}}';

export async function runAttack(
  { yaml = DEFAULT_CONFIG, answer }: AttackOptions,
  attack: (siege: AttackTarget) => Promise<void>,
): Promise<void> {
  const upstream = await startStrictUpstream(
    (socket, request) => !request.target.startsWith(WELL_BEHAVED_PATH) && answer?.(socket, request) === true,
  );
  const other = await startStrictUpstream();
  const gate = await startTidegate(yaml.replaceAll('{upstream}', upstream.url).replaceAll('{other}', other.url));
  const reached = () => upstream.requests.filter(({ target }) => !target.startsWith(WELL_BEHAVED_PATH));
  const client = startWellBehavedClient(gate.url);
  try {
    await attack({ gate, upstream, reached });
  } finally {
    await client.end();
  }
  expect([...upstream.faults, ...other.faults]).toEqual([]);
  await eventually(
    () => gate.view().limits.map(({ inFlight, queued }) => inFlight + queued),
    (busy) => busy.every((count) => count === 0),
  );
  for (const route of ['/', '(none)']) {
    await eventually(
      () => gate.metric(`tidegate_requests_in_flight{route="${route}"}`),
      (count) => count === 0,
    );
  }
  expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
  expect(gate.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
}

/** Sends reads and writes alternately on kept-alive connections; fails at the first response to another request. */
function startWellBehavedClient(url: string): { end: () => Promise<void> } {
  const agent = keepAlive();
  const ending = new AbortController();
  const ask = async (n: number): Promise<void> => {
    const target = `${WELL_BEHAVED_PATH}${n}`;
    const method = n % 2 === 0 ? 'GET' : 'POST';
    const body = method === 'GET' ? '' : `body ${n}`;
    const answer = await send(url, target, { method, agent, ...(body === '' ? {} : { body }) });
    expect([answer.status, answer.body.toString()]).toEqual([200, echo({ method, target, body })]);
  };
  const asking = (async () => {
    let n = 0;
    for (; !ending.signal.aborted; n += 1) {
      await ask(n);
      await pause(5);
    }
    // A last request, on a new connection.
    await ask(n);
    expect((await send(url, `${WELL_BEHAVED_PATH}last`)).status).toBe(200);
  })();
  asking.catch(() => undefined); // reported by `end`
  return {
    end: () => {
      ending.abort();
      return asking;
    },
  };
}
