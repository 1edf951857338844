// Whether what the compose file mounts is there, and whether every service is as locked up as it can be. Argument: the
// output of `docker-compose config`. That it is a compose file at all is for docker-compose to say.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

const service = z.object({
  build: z.object({ context: z.string(), dockerfile: z.string() }).optional(),
  image: z.string(),
  cap_drop: z.array(z.string()),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  ports: z.array(z.union([z.string(), z.object({ host_ip: z.string() })])).default([]),
  security_opt: z.array(z.string()),
  user: z.string().optional(),
  volumes: z.array(z.string()).default([]),
});

const [file] = process.argv.slice(2);
assert.ok(file, 'usage: compose.ts FILE');
const { services } = z.object({ services: z.record(z.string(), service) }).parse(parse(readFileSync(file, 'utf8')));

assert.deepEqual(Object.keys(services).toSorted(), ['grafana', 'practice', 'prometheus', 'tidegate']);
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
