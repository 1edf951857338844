// Checks that the image's config meets the needs of an orchestrator. Argument: the output of `buildah inspect`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const imageConfig = z.object({
  User: z.string(),
  ExposedPorts: z.record(z.string(), z.unknown()),
  Env: z.array(z.string()),
  Cmd: z.array(z.string()).nullish(),
  Healthcheck: z.object({ Test: z.array(z.string()) }),
  WorkingDir: z.string(),
  Entrypoint: z.array(z.string()),
  Labels: z.record(z.string(), z.string()),
  StopSignal: z.string(),
});
const inspected = z.object({ Docker: z.object({ config: imageConfig }) });

const [file] = process.argv.slice(2);
assert.ok(file, 'usage: image.ts FILE');
const { config } = inspected.parse(JSON.parse(readFileSync(file, 'utf8'))).Docker;

// A number other than root's: runAsNonRoot of Kubernetes rejects a name.
assert.match(config.User, /^[1-9]\d*:[1-9]\d*$/);
// No shell between the engine and the process, because a shell would not forward signals.
assert.equal(config.Entrypoint[0], 'node');
assert.equal(config.Healthcheck.Test[0], 'CMD');
assert.equal(config.Healthcheck.Test[1], 'node');
assert.equal(config.StopSignal, 'SIGTERM');
assert.deepEqual(Object.keys(config.ExposedPorts).toSorted(), ['8080/tcp', '9464/tcp', '9901/tcp']);
assert.ok(config.Env.includes('NODE_ENV=production'));
assert.ok(!config.Env.some((entry) => /npm_config|TOKEN|TIDEGATE_/i.test(entry)), 'nothing of the build stays');
assert.equal(config.Labels['org.opencontainers.image.licenses'], 'MIT');
