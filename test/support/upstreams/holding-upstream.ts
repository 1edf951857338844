import type { ServerResponse } from 'node:http';
import { eventually } from '../proxy/tidegate.ts';
import { type Hit, startHttpUpstream } from './http-upstream.ts';

/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 240_000;

/** A receiver that responds when the test says so. Closed when the test ends. */
export async function startHolding() {
  const held = new Map<ServerResponse, Hit>();
  const upstream = await startHttpUpstream((_nth, response, hit) => {
    held.set(response, hit);
    response.once('close', () => held.delete(response));
  });
  const hold = (count: number) =>
    eventually(
      () => held.size,
      (size) => size === count,
      WITHIN,
    );
  const release = (status = 200): void => {
    for (const response of held.keys()) response.writeHead(status).end();
  };
  return { upstream, held, hold, release };
}
