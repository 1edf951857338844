/** Responses that are kept for repeats, in the primary of workers and in Redis. */
import { describe, expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const PATIENCE = 300_000;
const IDEMPOTENCY = 'idempotency: {replayAnswers: 1h}';

const pay = (url: string, key: string, body = 'amount=1') =>
  send(url, '/pay', { method: 'POST', body, headers: ['Idempotency-Key', key, 'Authorization', 'Bearer a'] });

const startUpstream = () => startHttpUpstream((nth, response) => void response.end(`paid ${nth}`));

describe('a repeat gets the first response', () => {
  test(
    'whichever worker it reaches',
    async () => {
      const upstream = await startUpstream();
      const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${upstream.url}", ${IDEMPOTENCY}}}`);
      const keys = Array.from({ length: 10 }, (_, i) => `order-${i}`);
      for (const key of keys) {
        const first = await pay(gate.url, key);
        const repeats = await Promise.all([pay(gate.url, key), pay(gate.url, key), pay(gate.url, key)]);
        for (const repeat of repeats) expect(repeat.body.toString()).toBe(first.body.toString());
        expect((await pay(gate.url, key, 'amount=2')).status).toBe(422);
      }
      expect(upstream.hits).toHaveLength(keys.length);
      const served = gate.log().flatMap(({ msg, worker }) => (msg === 'request' ? [worker] : []));
      expect(new Set(served).size).toBe(2);
    },
    PATIENCE,
  );

  test(
    'whichever replica it reaches, also after the one that sent it was killed',
    async () => {
      const upstream = await startUpstream();
      const redis = await startRedis();
      const startReplica = async () => {
        const { child, ended, log } = startProcess([
          '--config',
          writeConfigFile(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
secret: a secret of at least thirty-two characters
state: {store: redis, url: "${redis.url}", timeout: 240ms}
upstreams: {api: {url: "${upstream.url}", timeout: 60s, ${IDEMPOTENCY}}}
`),
        ]);
        const [listening] = await eventually(
          () => log().filter(({ msg }) => msg === 'listening'),
          ({ length }) => length === 1,
        );
        return { url: String(listening?.['url']), kill: () => child.kill('SIGKILL'), ended };
      };
      const [one, other] = await Promise.all([startReplica(), startReplica()]);
      expect((await pay(one.url, 'order')).body.toString()).toBe('paid 1');
      const client = redis.client();
      // It is kept once the response has been sent. Killed just then, the replica still holds the key, until its lease ends.
      const [name = ''] = await eventually(
        () => client.keys('*:of:*'),
        ({ length }) => length === 1,
      );
      one.kill();
      await one.ended;
      const repeat = await pay(other.url, 'order');
      expect([repeat.body.toString(), repeat.header('idempotent-replayed')]).toEqual(['paid 1', 'true']);
      expect((await pay(other.url, 'order', 'amount=2')).status).toBe(422);
      expect(upstream.hits).toHaveLength(1);

      const stored = await client.getBuffer(name);
      expect(stored?.toString('latin1')).not.toContain('paid');
      expect(await client.pttl(name)).toBeGreaterThan(3_000_000);
    },
    PATIENCE,
  );
});
