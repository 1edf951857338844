/** Starts Redis and Tidegate as the Helm chart configures them, with the Redis users of docs/kubernetes.md. */
import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { one, podOf, readMounted } from '../../support/kubernetes/objects.ts';
import { readRelease } from '../../support/kubernetes/releases.ts';
import { makeFolder } from '../../support/redis/redis-process.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

test('replicas share a limit in Redis, and other users may only ping it', async () => {
  const release = readRelease('gateway');
  const objects = [...release.objects, ...release.secrets];
  const pod = podOf(one(objects, 'StatefulSet', 'tidegate-redis'));
  const [container] = pod.containers;
  if (container === undefined) throw new Error('no container of Redis');
  const [program, ...flags] = container.args ?? [];
  expect(program).toBe('redis-server');
  const settings = Object.fromEntries(pairs(flags));
  const users = readMounted(objects, pod, container)(settings['aclfile'] ?? '');

  // The client that waits for Redis to start is not one of its users, so the users are loaded afterwards.
  const aclfile = `${makeFolder()}/users.acl`;
  writeFileSync(aclfile, '');
  const redis = await startRedis({ settings: { ...settings, aclfile } });
  const before = redis.client();
  expect(await before.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
  writeFileSync(aclfile, users);
  await before.acl('LOAD');

  const anonymous = redis.client({ enableReadyCheck: false });
  // The container's probes send PING.
  expect(await anonymous.ping()).toBe('PONG');
  await expect(anonymous.get('tidegate:x')).rejects.toThrow('NOPERM');

  const password = Buffer.from(one(objects, 'Secret', 'tidegate').data?.['redis-password'] ?? '', 'base64').toString();
  const upstream = await startUpstream();
  const yaml = `
state: {store: redis, url: "redis://127.0.0.1:${redis.port}", username: tidegate, password: ${password}}
upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 100/s}}}
`;
  const gates = [await startTidegate(yaml), await startTidegate(yaml)];
  for (const gate of gates) expect((await send(gate.url, '/')).status).toBe(200);
  const degraded = () => Promise.all(gates.map((gate) => gate.metric('tidegate_store_degraded{store="redis"}')));
  await eventually(degraded, (all) => all.every((value) => value === 0));
  const keys = redis.client({ username: 'tidegate', password });
  expect((await keys.scan(0, 'COUNT', 1000))[1].some((key) => key.startsWith('tidegate:{api/'))).toBe(true);
  expect(gates.flatMap((gate) => gate.log()).filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
});

function pairs(flags: readonly string[]): [string, string][] {
  return flags.flatMap((flag, i) =>
    i % 2 === 0 ? [[flag.replace('--', ''), flags[i + 1] ?? ''] as [string, string]] : [],
  );
}
