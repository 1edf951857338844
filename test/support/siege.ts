/**
 * A Tidegate under attack, with a well-behaved client beside it that has to be served all the while. Afterwards nothing
 * may be left of the attack: no request in flight, no byte of a body, no error in the log, no request that was not one.
 */
import { expect } from 'vitest';
import { pause } from './pause.ts';
import { keepAlive, send } from './send.ts';
import type { AnswerStrictly, StrictUpstream } from './strict-upstream.ts';
import { echo, startStrictUpstream } from './strict-upstream.ts';
import type { Tidegate } from './tidegate.ts';
import { eventually, startTidegate } from './tidegate.ts';

export interface Siege {
  readonly gate: Tidegate;
  readonly upstream: StrictUpstream;
  /** What reached the upstream from others than the client beside. */
  readonly reached: () => StrictUpstream['requests'];
}

export interface Ground {
  /** The configuration; `{upstream}` stands for its URL, `{other}` for that of another one, which never fails. */
  readonly yaml?: string;
  readonly answer?: AnswerStrictly;
}

const BESIDE = '/beside/';
const API = 'upstreams: {api: {url: "{upstream}", retry: {attempts: 1}}}';

export async function besiege({ yaml = API, answer }: Ground, attack: (siege: Siege) => Promise<void>): Promise<void> {
  const upstream = await startStrictUpstream(
    (socket, request) => !request.target.startsWith(BESIDE) && answer?.(socket, request) === true,
  );
  const other = await startStrictUpstream();
  const gate = await startTidegate(yaml.replaceAll('{upstream}', upstream.url).replaceAll('{other}', other.url));
  const reached = () => upstream.requests.filter(({ target }) => !target.startsWith(BESIDE));
  const beside = startClientBeside(gate.url);
  try {
    await attack({ gate, upstream, reached });
  } finally {
    await beside.end();
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

/** Asks again and again, reading and writing in turn, on connections that stay open; fails with the first answer that is not its own. */
function startClientBeside(url: string): { end: () => Promise<void> } {
  const agent = keepAlive();
  const ending = new AbortController();
  const ask = async (n: number): Promise<void> => {
    const target = `${BESIDE}${n}`;
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
    // Once more when all is over, and on a connection of its own.
    await ask(n);
    expect((await send(url, `${BESIDE}last`)).status).toBe(200);
  })();
  asking.catch(() => undefined); // told by `end`
  return {
    end: () => {
      ending.abort();
      return asking;
    },
  };
}
