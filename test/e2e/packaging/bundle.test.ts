import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';
import { scenarioNames } from '../../../src/cli/bundled-scenarios.ts';
import { copyBundle } from '../../support/programs/bundle.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';
import { sendHttp2, openHttp2 } from '../../support/clients/http2-client.ts';
import type { ProcessResult, RunningProcess } from '../../support/proxy/process.ts';
import { run as runSource, startProcess } from '../../support/proxy/process.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

const { folder } = copyBundle();
const dist = join(folder, 'dist');
const ANY_PORT = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];

// Runs it outside the bundle's folder, like an installed program.
function start(args: readonly string[], script = 'main.js'): RunningProcess {
  return startProcess(args, { script: join(dist, script), cwd: '/', env: { TIDEGATE_CACHE: 'off' } });
}

function run(...args: string[]): Promise<ProcessResult> {
  return start(args).ended;
}

async function listening({ log }: RunningProcess): Promise<{ readonly url: string; readonly admin: string }> {
  const lines = await eventually(log, (seen) => seen.some(({ msg }) => msg === 'listening'));
  const line = lines.find(({ msg }) => msg === 'listening');
  return { url: String(line?.['url']), admin: String(line?.['admin']) };
}

/** Resolves to the output once it matches `pattern`. */
async function printed({ child }: RunningProcess, pattern: RegExp): Promise<string> {
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return eventually(
    () => text,
    (seen) => pattern.test(seen),
  );
}

describe('the bundle files', () => {
  const code = new Map(
    readdirSync(dist)
      .filter((name) => name.endsWith('.js'))
      .map((name) => [name, readFileSync(join(dist, name), 'utf8')]),
  );
  const imported = (name: string): string[] =>
    Array.from(code.get(name)?.matchAll(/(?:\bfrom|\bimport)"([^"]+)"/g) ?? [], ([, from = '']) => from);

  test('import only each other, and load the modules of Node without an import', () => {
    expect(code.size).toBeGreaterThan(5);
    const all = [...code.keys()].flatMap(imported);
    expect(all.filter((from) => !code.has(from.slice('./'.length)))).toEqual([]);
  });

  test('are ASCII, because other strings take twice the memory', () => {
    expect([...code].filter(([, text]) => /[^\0-\x7f]/.test(text)).map(([name]) => name)).toEqual([]);
  });

  test('come with the licences of their dependencies', () => {
    const licences = readFileSync(join(dist, 'LICENCES.txt'), 'utf8');
    const missing = ['fastify', 'undici', 'pino', 'zod', 'uplot'].filter(
      (name) => !new RegExp(`^${name} \\d`, 'm').test(licences),
    );
    expect(missing).toEqual([]);
  });
});

describe('serve', () => {
  test('forwards, measures and drains', async () => {
    const upstream = await startUpstream();
    const running = start(['--upstream', upstream.url, ...ANY_PORT]);
    const { url, admin } = await listening(running);
    const answer = await fetch(`${url}/echo`, { method: 'POST', body: 'a body' });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ method: 'POST' });
    const metrics = await (await fetch(`${admin}/metrics`)).text();
    expect(metrics).toMatch(/^tidegate_requests_total\{.*\} 1$/m);
    expect(metrics).toMatch(/^process_resident_memory_bytes \d/m);
    expect((await fetch(`${admin}/nowhere`)).status).toBe(404);
    running.child.kill('SIGINT');
    const { code, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  test('serves every file of its page', async () => {
    const { admin } = await listening(start(['--upstream', 'http://127.0.0.1:1', ...ANY_PORT]));
    const wanted = ['/'];
    for (const path of wanted) {
      const answer = await fetch(`${admin}${path}`);
      expect({ path, status: answer.status }).toEqual({ path, status: 200 });
      const text = await answer.text();
      const named = text.matchAll(/(?:from |href=|src=)['"]((?:\.{1,2}|\/page)\/[\w/-]+\.(?:js|css|svg))['"]/g);
      for (const [, name = ''] of named) {
        const { pathname } = new URL(name, `${admin}${path}`);
        if (!wanted.includes(pathname)) wanted.push(pathname);
      }
    }
    expect(wanted).toContain('/page/uplot.js');
    expect(wanted.length).toBeGreaterThan(20);
  });

  test('serves HTTP/2 to clients and uses it with upstreams', async () => {
    const certificates = makeCertificates();
    onTestFinished(certificates.remove);
    certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
    const identity = { key: certificates.read('server.key'), cert: certificates.read('server.crt') };
    const upstream = await startHttp2(identity, (stream) => {
      stream.respond({ ':status': 200 });
      stream.end('by two');
    });
    const config = join(folder, 'http2.yaml');
    const tls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
    writeFileSync(
      config,
      `listen: {address: 127.0.0.1:0, tls: ${tls}, http2: true}
admin: 127.0.0.1:0
upstreams: {api: {url: ${upstream.url}, http2: true, tls: {ca: ${certificates.path('ca.crt')}}}}
`,
    );
    const { url } = await listening(start(['--config', config]));
    const session = await openHttp2(url, certificates.read('ca.crt'));
    const { status, body } = await sendHttp2(session, '/');
    expect({ status, body: body.toString() }).toEqual({ status: 200, body: 'by two' });
    expect(upstream.heads).toHaveLength(1);
  });

  test('reads provider presets, reports errors with positions, and fails without arguments', async () => {
    const example = join(folder, 'stripe.yaml');
    writeFileSync(example, 'upstreams: {stripe: {provider: stripe}}\n');
    const checked = await run('check', '--full', example);
    expect(checked).toMatchObject({ code: 0, stderr: '' });
    expect(checked).toEqual(await runSource(['check', '--full', example]));
    expect(checked.stdout).toContain('Providers:');
    const [wrong, nothing] = await Promise.all([run('check', join(folder, 'package.json')), run()]);
    expect(wrong).toMatchObject({ code: 1, stdout: '' });
    expect(wrong.stderr).toContain('package.json:2:');
    expect(nothing).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('other commands print the same as from source', () => {
  test('version, help and schema', async () => {
    const [version, help, schema] = await Promise.all([run('version'), run('help'), run('schema')]);
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly version: string };
    expect(version).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
    expect(help.stdout).toContain('tidegate --upstream');
    expect(JSON.parse(schema.stdout)).toEqual(JSON.parse(JSON.stringify(configJsonSchema())));
  });

  test.each([
    ['simulate', 'open'],
    ['backoff', 'full-jitter', 'fibonacci'],
  ])('%s %s', async (...args) => {
    expect(await run(...args)).toEqual(await runSource(args));
  });

  test('simulate --list', async () => {
    const { code, stdout } = await run('simulate', '--list');
    expect(code).toBe(0);
    expect(Array.from(stdout.matchAll(/^ {2}(\S+)/gm), ([, name]) => name)).toEqual(scenarioNames());
    expect(stdout).not.toContain('mistakes');
  });

  test('demo', async () => {
    const demo = start(['demo', ...ANY_PORT]);
    expect(await printed(demo, /^ +1 s /m)).toContain('learned rate');
    demo.child.kill('SIGINT');
    expect(await demo.ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('practice', async () => {
    const practice = start(['--listen', '127.0.0.1:0'], 'practice.js');
    const [url] = /http:\S+/.exec(await printed(practice, /\n/)) ?? [];
    expect((await fetch(String(url))).status).toBe(200);
  });
});
