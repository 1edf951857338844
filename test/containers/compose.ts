// Whether what the compose file mounts is there, and whether every service is as locked up as it can be. Argument: the
// output of `docker-compose --profile replicas config`. That it is a compose file at all is for docker-compose to say.
// Tells how its Redis is started, an argument a line.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

const service = z.object({
  build: z.object({ context: z.string(), dockerfile: z.string() }).optional(),
  image: z.string(),
  cap_drop: z.array(z.string()),
  command: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  networks: z.record(z.string(), z.unknown()),
  ports: z.array(z.union([z.string(), z.object({ host_ip: z.string(), published: z.coerce.string() })])).default([]),
  profiles: z.array(z.string()).default([]),
  security_opt: z.array(z.string()),
  user: z.string().optional(),
  volumes: z.array(z.string()).default([]),
});

type Service = z.infer<typeof service>;

const compose = z.object({
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.object({ internal: z.boolean().default(false) })),
});

const [file] = process.argv.slice(2);
assert.ok(file, 'usage: compose.ts FILE');
const { services, networks } = compose.parse(parse(readFileSync(file, 'utf8')));
const { redis, tidegate, 'tidegate-1': one, 'tidegate-2': other } = services;
assert.ok(redis && tidegate && one && other);

assert.deepEqual(
  named(({ profiles }) => profiles.length === 0),
  ['grafana', 'practice', 'prometheus', 'tidegate'],
);
assert.deepEqual(
  named(({ profiles }) => profiles.includes('replicas')),
  ['redis', 'tidegate-1', 'tidegate-2'],
);
for (const [name, made] of Object.entries(services)) {
  for (const volume of made.volumes) {
    const [source = ''] = volume.split(':');
    if (isAbsolute(source)) assert.ok(existsSync(source), `${name} mounts ${source}, which is not there`);
  }
  assert.deepEqual(made.cap_drop, ['ALL'], `${name} keeps capabilities`);
  assert.deepEqual(made.security_opt, ['no-new-privileges:true'], name);
  // An image that is not ours may run as root unless told.
  if (made.build === undefined) assert.match(made.user ?? '', /^[1-9]\d*:/, `${name} may run as root`);
  // Ours has a health check of its own.
  if (made.build === undefined) assert.ok(made.healthcheck, `${name} has no health check`);
  for (const port of made.ports) {
    const address = typeof port === 'string' ? port : port.host_ip;
    assert.ok(address.startsWith('127.0.0.1'), `${name} publishes ${address} to the world`);
  }
}

// Replicas are alike but for their ports, and nobody else reaches what they share.
assert.deepEqual({ ...one, ports: [] }, { ...other, ports: [] });
assert.deepEqual([one.command, one.volumes], [tidegate.command, tidegate.volumes]);
assert.equal(one.environment['TIDEGATE_REDIS_URL'], 'redis://redis:6379');
assert.equal(tidegate.environment['TIDEGATE_REDIS_URL'], undefined);
assert.equal(new Set([tidegate, one, other].flatMap(({ ports }) => ports.map(publishedAt))).size, 3, 'a port for each');
assert.deepEqual(
  named(({ networks: own }) => 'store' in own),
  ['redis', 'tidegate-1', 'tidegate-2'],
);
assert.deepEqual(Object.keys(redis.networks), ['store']);
assert.ok(networks['store']?.internal, 'the network of Redis has a way out');

console.log(redis.command.join('\n'));

function named(holds: (made: Service) => boolean): string[] {
  return Object.entries(services)
    .filter(([, made]) => holds(made))
    .map(([name]) => name)
    .toSorted();
}

function publishedAt(port: Service['ports'][number]): string {
  return typeof port === 'string' ? port.slice(0, port.lastIndexOf(':')) : `${port.host_ip}:${port.published}`;
}
