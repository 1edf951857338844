import { describe, expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { runAttack } from '../../support/proxy/attack-harness.ts';
import { readResponses } from '../../support/clients/strict-http.ts';

const HIDDEN = 'GET /hidden-in-a-body HTTP/1.1\r\nHost: x\r\n\r\n';
const BEHIND = `POST /behind HTTP/1.1\r\nHost: x\r\nContent-Length: ${HIDDEN.length}\r\n\r\n`;
const h2c = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n';
const websocket = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';

const OFFERS: readonly (readonly [string, string, string])[] = [
  ['h2c', `GET /1 HTTP/1.1\r\nHost: x\r\n${h2c}\r\n`, ''],
  ['h2c with a body', `POST /1 HTTP/1.1\r\nHost: x\r\n${h2c}Content-Length: 3\r\n\r\nabc`, 'abc'],
  [
    'h2c with chunks',
    `POST /1 HTTP/1.1\r\nHost: x\r\n${h2c}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    'abc',
  ],
  ['a WebSocket with a body', `GET /1 HTTP/1.1\r\nHost: x\r\n${websocket}Content-Length: 3\r\n\r\nabc`, 'abc'],
  ['TLS', 'OPTIONS /1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n', ''],
];

describe('data after a declined upgrade is never read as a request', () => {
  test.each(OFFERS)('%s: in the same read and in all later ones', async (_, offer, body) => {
    await runAttack({}, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write(offer + BEHIND);
      await pause(20);
      client.write(HIDDEN);
      const answers = readResponses(await client.ended(), []);
      expect(answers.map(({ status, headers }) => [status, headers.includes('close')])).toEqual([[200, true]]);
      expect(reached().map(({ target, body: sent }) => [target, sent])).toEqual([['/1', body]]);
    });
  });

  test.each(OFFERS)('%s: wherever it is split', async (_, offer, body) => {
    await runAttack({}, async ({ gate, reached }) => {
      const follows = BEHIND + HIDDEN;
      const splitAt = async (at: number): Promise<void> => {
        const client = await openRaw(gate.url);
        client.write((offer + follows).slice(0, at));
        await pause(5);
        client.write((offer + follows).slice(at));
        const answers = readResponses(await client.ended(15_000), []);
        expect(
          answers.map(({ status }) => status),
          `split at ${at}`,
        ).toEqual([200]);
      };
      const splits = Array.from({ length: follows.length + offer.length - 1 }, (__, at) => at + 1);
      while (splits.length > 0) await Promise.all(splits.splice(0, 30).map(splitAt));
      expect(reached().filter(({ target }) => target !== '/1')).toEqual([]);
      expect(new Set(reached().map((each) => each.body))).toEqual(new Set([body]));
    });
  });

  test('when the upgrade itself was queued', async () => {
    await runAttack({}, async ({ gate, reached }) => {
      const client = await openRaw(gate.url);
      client.write(`GET /0 HTTP/1.1\r\nHost: x\r\n\r\nGET /1 HTTP/1.1\r\nHost: x\r\n${websocket}\r\n${BEHIND}`);
      await pause(20);
      client.write(HIDDEN);
      const answers = readResponses(await client.ended(), []);
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      expect(reached().map(({ target }) => target)).toEqual(['/0', '/1']);
    });
  });

  test('and gets no error when it is malformed', async () => {
    await runAttack({}, async ({ gate }) => {
      const client = await openRaw(gate.url);
      client.write(`GET /1 HTTP/1.1\r\nHost: x\r\n${h2c}\r\n`);
      client.write('NONSENSE\r\n\r\n');
      expect(readResponses(await client.ended(), []).map(({ status }) => status)).toEqual([200]);
    });
  });
});
