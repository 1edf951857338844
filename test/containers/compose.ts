// Checks that every mounted file exists and that every service has minimal privileges. Argument: the output of
// `docker-compose config` with all profiles; docker-compose itself validates the file. Prints the command of its Redis,
// one argument a line.

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
  read_only: z.boolean().default(false),
  secrets: z.array(z.object({ source: z.string() })).default([]),
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
const { redis, tidegate, 'tidegate-1': one, 'tidegate-2': other, deliveries } = services;
assert.ok(redis && tidegate && one && other && deliveries);

const PROFILES = {
  gateway: named(({ profiles }) => profiles.length === 0),
  monitoring: named(({ profiles }) => profiles.includes('monitoring')),
  replicas: named(({ profiles }) => profiles.includes('replicas')),
  deliveries: named(({ profiles }) => profiles.includes('deliveries')),
};
assert.deepEqual(PROFILES, {
  gateway: ['accounts', 'payments', 'tidegate'],
  monitoring: ['grafana', 'prometheus'],
  replicas: ['redis', 'tidegate-1', 'tidegate-2'],
  deliveries: ['deliveries', 'shop'],
});
for (const [name, made] of Object.entries(services)) {
  for (const volume of made.volumes) {
    const [source = ''] = volume.split(':');
    if (isAbsolute(source)) assert.ok(existsSync(source), `${name} mounts ${source}, which is not there`);
  }
  assert.deepEqual(made.cap_drop, ['ALL'], `${name} keeps capabilities`);
  assert.deepEqual(made.security_opt, ['no-new-privileges:true'], name);
  // Grafana updates its plugins in its own folder.
  assert.equal(made.read_only, name !== 'grafana', `${name} may write into its image`);
  // Environment variables are visible to everyone who can inspect the process or the container.
  assert.ok(
    !Object.keys(made.environment).some((key) => /SECRET|PASSWORD|TOKEN/.test(key)),
    `${name} has secrets as variables`,
  );
  // A third-party image may run as root by default.
  if (made.build === undefined) assert.match(made.user ?? '', /^[1-9]\d*:/, `${name} may run as root`);
  // Tidegate's image has its own health check.
  if (made.build === undefined) assert.ok(made.healthcheck, `${name} has no health check`);
  for (const port of made.ports) {
    const address = typeof port === 'string' ? port : port.host_ip;
    assert.ok(address.startsWith('127.0.0.1'), `${name} publishes ${address} to the world`);
  }
}

// Accepted deliveries outlive the container.
assert.ok(deliveries.volumes.some((volume) => volume.startsWith('deliveries:/var/lib/tidegate')));

// Replicas differ only in their ports, and only they reach Redis.
assert.deepEqual({ ...one, ports: [] }, { ...other, ports: [] });
assert.deepEqual(one.command, tidegate.command);
assert.deepEqual(
  named(({ secrets }) => secrets.length > 0),
  ['deliveries', 'redis', 'tidegate-1', 'tidegate-2'],
);
const published = [tidegate, one, other, deliveries].flatMap(({ ports }) => ports.map(publishedAt));
assert.equal(new Set(published).size, 7, 'a port for each, and one for the page of each replica and of the deliveries');
assert.deepEqual(
  named(({ networks: own }) => 'store' in own),
  ['redis', 'tidegate-1', 'tidegate-2'],
);
assert.deepEqual(Object.keys(redis.networks), ['store']);
assert.ok(networks['store']?.internal, 'the network of Redis has a way out');

// The file with the users of Redis is generated where it runs.
assert.deepEqual(redis.command.slice(-2), ['--aclfile', '/run/secrets/redis-users.acl']);
console.log(redis.command.slice(0, -2).join('\n'));

function named(holds: (made: Service) => boolean): string[] {
  return Object.entries(services)
    .filter(([, made]) => holds(made))
    .map(([name]) => name)
    .toSorted();
}

function publishedAt(port: Service['ports'][number]): string {
  return typeof port === 'string' ? port.slice(0, port.lastIndexOf(':')) : `${port.host_ip}:${port.published}`;
}
