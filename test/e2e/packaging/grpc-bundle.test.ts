/** gRPC checks of the bundle, which loads grpc-js only if they are configured. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { copyBundle } from '../../support/programs/bundle.ts';
import { describeAsEnvoy, openEnvoyClient } from '../../support/clients/envoy-client.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const { folder } = copyBundle();
const START = 60_000;

test('the bundle answers gRPC checks, with workers too', async () => {
  const config = writeConfigFile(`listen: 127.0.0.1:0
admin: false
workers: 2
drain: {delay: 0, timeout: 5s}
upstreams: {api: {url: "http://127.0.0.1:9"}}
clients: {trustedProxies: [127.0.0.1]}
check: {grpc: true}
`);
  const running = startProcess(['serve', '--config', config], { script: join(folder, 'dist/main.js') });
  const [line] = await eventually(
    () => running.log().filter(({ msg }) => msg === 'listening'),
    (lines) => lines.length > 0,
    START,
  );
  const envoy = openEnvoyClient(new URL(String(line?.['url'])).host);
  expect(await envoy.check(describeAsEnvoy())).toMatchObject({ status: { code: 0 } });
  const limit = await envoy.shouldRateLimit({ domain: 'api', descriptors: [{ entries: [] }] });
  expect(limit).toMatchObject({ overallCode: 'OK' });
  running.child.kill('SIGTERM');
  expect((await running.ended).stderr).toBe('');
});
