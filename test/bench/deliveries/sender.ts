// Sends notifications as a provider does: each again, until it is answered with a 202. node sender.ts URL COUNT
// Prints the number of repeats once all are accepted.
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { LANES, makeNotification } from './notification.ts';

/** Before a notification is sent again. */
const RETRY_DELAY = 50;

const [url = '', count = '0'] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: LANES });
const filler = 'x'.repeat(900);
let repeats = 0;

function send(body: string): Promise<number> {
  return new Promise((resolve) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    const sent = request(`${url}/hooks`, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', () => resolve(0));
    });
    sent.once('error', () => resolve(0));
    sent.end(body);
  });
}

await Promise.all(
  Array.from({ length: LANES }, async (_, lane) => {
    const end = Math.ceil((Number(count) - lane) / LANES);
    for (let n = 0; n < end; n += 1) {
      const body = JSON.stringify({ ...makeNotification(lane, n), filler });
      while ((await send(body)) !== 202) {
        repeats += 1;
        await sleep(RETRY_DELAY);
      }
    }
  }),
);
console.log(repeats);
agent.destroy();
