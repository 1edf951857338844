import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { atEnd } from '../../support/at-end.ts';
import type { InstalledPackage } from '../../support/programs/installed-package.ts';
import { installPackage } from '../../support/programs/installed-package.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';

const ROOT = join(import.meta.dirname, '../../..');
const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly version: string;
};
const PATIENCE = 40_000;
const ANY_PORT = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];

let installed: InstalledPackage;

// Follows docs/package.md and docs/library.md: packs, installs from the tarball (without a network, in place of
// `npm install tidegate`) and runs. The packages of this checkout replace `npm ci`.
beforeAll(() => {
  installed = installPackage();
}, 180_000);

afterAll(() => installed.remove());

/** Resolves to the output once it matches `pattern`. */
async function printed(args: readonly string[], pattern: RegExp): Promise<string> {
  const child = installed.start('npx', ['tidegate', ...args]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  return eventually(
    () => output,
    (seen) => pattern.test(seen),
    PATIENCE,
  );
}

describe('the tarball', () => {
  test('contains the program, types and configurations, and no development files', () => {
    const { files, size, unpackedSize } = installed.packed;
    console.log(
      `${files.length} files, ${(size / 1e6).toFixed(2)} MB packed, ${(unpackedSize / 1e6).toFixed(2)} MB unpacked`,
    );
    const top = new Set(files.map((file) => file.replace(/\/.*/, file.includes('/') ? '/' : '')));
    expect([...top].toSorted()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'config/', 'dist/', 'package.json']);
    const strange = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'));
    expect([...strange, ...files.filter((file) => /\.(map|tgz|kept)$|test|node_modules/.test(file))]).toEqual([]);
    const wanted = [
      'main.js',
      'program.js',
      'practice.js',
      'index.js',
      'index.d.ts',
      'policy.js',
      'policy.d.ts',
      'LICENCES.txt',
    ];
    expect(wanted.filter((file) => !files.includes(`dist/${file}`))).toEqual([]);
    expect(files).toContain('config/providers/stripe.yaml');
    expect(size).toBeLessThan(2_000_000);
  });

  test('has no dependencies', () => {
    const manifest = JSON.parse(
      readFileSync(join(installed.folder, 'node_modules/tidegate/package.json'), 'utf8'),
    ) as object;
    const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as object;
    expect(Object.keys(manifest)).toEqual([
      'name',
      'version',
      'description',
      'keywords',
      'license',
      'homepage',
      'bugs',
      'repository',
      'type',
      'bin',
      'exports',
      'files',
      'publishConfig',
      'engines',
      'peerDependencies',
      'peerDependenciesMeta',
    ]);
    expect(manifest).toMatchObject({ peerDependenciesMeta: { fastify: { optional: true } } });
    expect(readdirSync(join(installed.folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'tidegate',
    ]);
    // Packing leaves the checkout unchanged.
    expect(JSON.parse(readFileSync(join(installed.checkout, 'package.json'), 'utf8'))).toEqual(own);
    expect(existsSync(join(installed.checkout, 'package.json.kept'))).toBe(false);
  });
});

describe('after an interrupted npm pack', () => {
  const manifest = (): string => join(installed.checkout, 'package.json');
  const kept = (): string => `${manifest()}.kept`;
  const restore = (): { readonly status: number | null; readonly stderr: string } => {
    const { status, stderr } = installed.run(process.execPath, [
      join(installed.checkout, 'scripts/package.ts'),
      'after',
    ]);
    return { status, stderr };
  };
  const published = (): Buffer => readFileSync(join(installed.folder, 'node_modules/tidegate/package.json'));

  test('restores package.json', () => {
    const original = readFileSync(manifest(), 'utf8');
    copyFileSync(manifest(), kept());
    writeFileSync(manifest(), published());
    expect(restore()).toEqual({ status: 0, stderr: '' });
    expect(readFileSync(manifest(), 'utf8')).toBe(original);
    expect(existsSync(kept())).toBe(false);
  });

  test('does not replace a newer package.json by the kept one', () => {
    const original = readFileSync(manifest(), 'utf8');
    atEnd(() => writeFileSync(manifest(), original));
    copyFileSync(manifest(), kept());
    expect(restore()).toEqual({ status: 0, stderr: '' });
    expect(existsSync(kept())).toBe(false);
    const newer = original.replace(VERSION, '9.9.9');
    copyFileSync(manifest(), kept());
    atEnd(() => rmSync(kept()));
    writeFileSync(manifest(), newer);
    expect(restore()).toEqual({
      status: 1,
      stderr:
        'An interrupted npm pack left package.json.kept, and package.json has changed since. Remove package.json.kept, or move it to package.json.\n',
    });
    expect(readFileSync(manifest(), 'utf8')).toBe(newer);
  });
});

describe('npm publish', () => {
  test('accepts the tarball', () => {
    const { status, stderr } = installed.run('npm', ['publish', '--dry-run', installed.packed.tarball]);
    expect(stderr).toContain('public access (dry-run)');
    expect(stderr).not.toContain('auto-corrected');
    expect(status).toBe(0);
  });

  test('refuses the checkout, whose manifest has all dependencies', () => {
    const { status, stderr } = installed.run('npm', ['publish', '--dry-run', installed.checkout]);
    expect(stderr).toContain('npm publish needs a tarball: run `npm pack`, then `npm publish tidegate-X.Y.Z.tgz`.');
    expect(status).not.toBe(0);
  });
});

describe('npx tidegate', () => {
  test('--version', () => {
    const { status, stdout, stderr } = installed.run('npx', ['tidegate', '--version']);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  test.each([
    ['the program', ['node_modules/.bin/tidegate', '--version'], 2],
    ['a program that imports it', ['--eval', `import('tidegate/policy')`], 1],
  ] as const)(
    'prints the required Node version, without a stack of source code, in an old Node: %s',
    (_, args, expected) => {
      const posing = `Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.20.2'}})`;
      const old = ['--import', `data:text/javascript,${encodeURIComponent(posing)}`];
      const { status, stdout, stderr } = installed.run(process.execPath, [...old, ...args]);
      expect([status, stdout]).toEqual([expected, '']);
      expect(stderr).toContain('tidegate needs Node 22.21, or 24.9 and later: this is v20.20.2\n');
      expect(stderr.length).toBeLessThan(1000);
    },
  );

  test('check reads provider presets and reports errors', () => {
    installed.write('mine.yaml', 'upstreams: {stripe: {provider: stripe}}\n');
    const { status, stdout, stderr } = installed.run('npx', ['tidegate', 'check', 'mine.yaml']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('Providers:');
    installed.write('wrong.yaml', 'upstreams: {stripe: {provder: stripe}}\n');
    const wrong = installed.run('npx', ['tidegate', 'check', 'wrong.yaml']);
    expect(wrong.status).toBe(1);
    expect(wrong.stderr).toContain('did you mean provider?');
  });

  test('serve forwards requests', async () => {
    const upstream = await startUpstream();
    const output = await printed(['serve', '--upstream', upstream.url, ...ANY_PORT], /"msg":"listening"/);
    const [, url] = /"url":"([^"]+)"/.exec(output) ?? [];
    const answer = await fetch(`${url}/echo`, { method: 'POST', body: 'a body' });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ method: 'POST' });
    expect(answer.headers.get('via')).toContain('tidegate-');
  });

  test('demo serves its page', async () => {
    const output = await printed(['demo', ...ANY_PORT], /^ +1 s /m);
    const urls = Array.from(output.matchAll(/http:\/\/127\.0\.0\.1:\d+/g), ([url]) => url);
    const pages = await Promise.all(urls.map(async (url) => (await fetch(url)).headers.get('content-type')));
    expect(pages).toContainEqual(expect.stringContaining('text/html'));
  });
});

const CONSUMER = `
import Fastify from 'fastify';
import { ConfigError, tidegate } from 'tidegate';
import type { ConfigInput, Mounted } from 'tidegate';
import { backoffs, failureOf, retry, RetryBudget, simulate } from 'tidegate/policy';
import type { RetryOptions, ScenarioInput } from 'tidegate/policy';

const config: ConfigInput = {
  upstreams: { api: { url: process.argv[2], retry: { attempts: 3, backOff: { strategy: 'equal-jitter' } } } },
};
const app = Fastify({ logger: false });
let mounted: Mounted | undefined;
await app.register(tidegate, { prefix: '/api', config, onMounted: (one) => (mounted = one) });
const url = await app.listen({ port: 0 });
const answer = await fetch(\`\${url}/api/echo\`, { method: 'POST', body: 'through' });
const metrics: string = (await mounted?.metrics()) ?? '';
await app.close();

const budget = new RetryBudget({ ratio: 0.1, burst: 2 });
const options: RetryOptions<string> = { attempts: 3, backOff: { strategy: 'fixed', baseInterval: '1ms' }, budget };
const value: string = await retry(({ attempt }) => {
  if (attempt < 3) throw new Error('not yet');
  return 'done';
}, options);
const failure = await retry(() => Promise.reject(new TypeError('mine'))).catch((error: unknown) => failureOf(error)?.end);

const scenario: ScenarioInput = {
  duration: '5s',
  upstream: { limit: { kind: 'token-bucket', rate: '50/s', burst: 5 } },
  clients: [{ total: '20/s' }],
};
const wrong = Fastify();
const refused: unknown = await wrong.register(tidegate, { config: {} }).then(() => undefined, (error: unknown) => error);
console.log(JSON.stringify({
  status: answer.status,
  counted: metrics.includes('tidegate_requests_total'),
  value,
  failure,
  first: backoffs.doubling.make().next(0, 0, Math.random)?.delay,
  goodput: (await simulate(scenario)).goodput,
  refused: refused instanceof ConfigError && refused.message,
}));
`;

/** Programs that must not compile. */
const MISUSES = [
  `import { tidegate } from 'tidegate'; import Fastify from 'fastify'; Fastify().register(tidegate, { config: { upstreams: { api: { ur: 'x' } } } });`,
  `import { tidegate } from 'tidegate'; import Fastify from 'fastify'; Fastify().register(tidegate, {});`,
  `import { retry } from 'tidegate/policy'; await retry(() => 1, { atempts: 3 });`,
  `import { retry } from 'tidegate/policy'; await retry(() => 1, { backOff: 'ful-jitter' });`,
  `import { simulate } from 'tidegate/policy'; simulate({ duration: '5s' });`,
  `import { x } from 'tidegate/dist/main.js';`,
];

/** The options of the plugin, each with a misspelt key or value, and what the compiler says at that place. */
const MISSPELT_OPTIONS = [
  [`config: { upstreams: { api: { url: 'http://a', timout: '3s' } } }`, 'timout', "mean to write 'timeout'?"],
  [`prefix: '/a', config: { upstrems: {} }`, 'upstrems', "mean to write 'upstreams'?"],
  [`config: { routes: [{ path: '/', upstrem: 'api' }] }`, 'upstrem', "mean to write 'upstream'?"],
  [`config: { state: { store: 'redis', ulr: 'redis://a' } }`, 'ulr', "'ulr' does not exist"],
  [`config: { upstreams: { api: { provider: 'strpe' } } }`, 'provider', `mean '"stripe"'?`],
  [`config: { upstreams: {} }, registri: {}`, 'registri', "'registri' does not exist"],
  [`prefix: '/a', fil: 'tidegate.yaml'`, 'fil', "'fil' does not exist"],
] as const;

/** Programs that must compile: the examples of docs/library.md. */
const EXAMPLES = Array.from(
  readFileSync(join(ROOT, 'docs/library.md'), 'utf8').matchAll(/<!-- run -->\n```ts\n([^]*?)```/g),
  ([, source = '']) => source,
);

/** A program with the shipped configurations and scenarios as typed values. */
function writeShipped(config: string): string {
  const values = ['', 'examples', 'scenarios'].flatMap((folder) =>
    readdirSync(join(config, folder))
      .filter((file) => file.endsWith('.yaml'))
      .map((file) => {
        const value: unknown = parse(readFileSync(join(config, folder, file), 'utf8'));
        return `export const of${folder}_${file.replaceAll(/\W/g, '_')}: ${folder === 'scenarios' ? 'ScenarioInput' : 'ConfigInput'} = ${JSON.stringify(value)};\n`;
      }),
  );
  expect(values.length).toBeGreaterThan(10);
  const imports = `import type { ConfigInput } from 'tidegate';\nimport type { ScenarioInput } from 'tidegate/policy';\n`;
  return imports + values.join('');
}

describe('a program that imports it', () => {
  /** The errors of the compiler by module resolution. It compiles all programs at once, which takes as long as one of them. */
  const errors: Record<string, readonly string[]> = {};

  const write = (name: string, sources: readonly string[]): string[] =>
    sources.map((source, i) => {
      installed.write(`${name}-${i}.ts`, source);
      return `${name}-${i}.ts`;
    });

  const compile = (resolution: readonly string[], files: readonly string[]): string[] => {
    const strict = [
      '--strict',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
      '--skipLibCheck',
      'false',
    ];
    const options = ['--target', 'es2024', '--types', 'node', '--noEmit'];
    // Each thread would check the types of the libraries again.
    const args = [...resolution, ...strict, ...options, '--singleThreaded', ...files];
    const { stdout } = installed.run(join(ROOT, 'node_modules/.bin/tsc'), args);
    return stdout.split(/\n(?=\S)/).filter((line) => line !== '');
  };

  beforeAll(() => {
    for (const name of ['fastify', '@types/node']) installed.have(name);
    installed.write('package.json', '{"type": "module"}');
    installed.write('consumer.ts', CONSUMER);
    installed.write('shipped.ts', writeShipped(join(installed.folder, 'node_modules/tidegate/config')));
    const misuses = write(
      'misuse',
      MISUSES.map((source) => `${source}\nexport {};\n`),
    );
    const head = `import { tidegate } from 'tidegate';\nimport Fastify from 'fastify';\n`;
    const misspelt = write(
      'misspelt',
      MISSPELT_OPTIONS.map(([options]) => `${head}Fastify().register(tidegate, {\n${options}\n});\n`),
    );
    const examples = write('example', EXAMPLES);
    const both = ['consumer.ts', ...misuses];
    errors['nodenext'] = compile(
      ['--module', 'nodenext', '--moduleResolution', 'nodenext'],
      [...both, 'shipped.ts', ...misspelt, ...examples],
    );
    errors['bundler'] = compile(['--module', 'esnext', '--moduleResolution', 'bundler'], both);
  }, 60_000);

  const errorsIn = (file: string, resolution = 'nodenext'): readonly string[] =>
    (errors[resolution] ?? []).filter((error) => error.startsWith(`${file}(`));

  test.each(['nodenext', 'bundler'])(
    'compiles in strict mode with %s, including library types, and misuse does not',
    (resolution) => {
      expect(errors[resolution]?.filter((error) => !/^mis(?:use|spelt)-\d+\.ts\(/.test(error))).toEqual([]);
      expect(MISUSES.filter((_, i) => errorsIn(`misuse-${i}.ts`, resolution).length === 0)).toEqual([]);
    },
  );

  test('gets an error at the key of a misspelt option of the plugin', () => {
    for (const [i, [options, key, words]] of MISSPELT_OPTIONS.entries()) {
      const [error = '', ...others] = errorsIn(`misspelt-${i}.ts`);
      expect(others).toEqual([]);
      expect(error).toMatch(new RegExp(`^misspelt-${i}\\.ts\\(4,${options.indexOf(key) + 1}\\)`));
      expect(error).toContain(words);
    }
  });

  test('accepts the shipped configurations and scenarios as typed values', () => {
    expect(errorsIn('shipped.ts')).toEqual([]);
  });

  test('runs and gets the expected results', async () => {
    const upstream = await startUpstream();
    const child = installed.start(process.execPath, ['consumer.ts', upstream.url]);
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({
      status: 200,
      counted: true,
      value: 'done',
      failure: 'stopped',
      first: 1000,
      goodput: 1,
      refused: 'config: upstreams: at least one upstream is needed',
    });
  });

  test('compiles and runs the examples of docs/library.md', async () => {
    expect(EXAMPLES).toHaveLength(4);
    const files = EXAMPLES.map((_, i) => `example-${i}.ts`);
    expect(files.flatMap((file) => errorsIn(file))).toEqual([]);
    const upstream = await startUpstream();
    const run = async (file: string): Promise<string> => {
      const child = installed.start('env', [`PAYMENTS=${upstream.url}`, process.execPath, file]);
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
      expect(stderr).toBe('');
      return stdout;
    };
    const [mounted, retried, delays, simulated] = await Promise.all(files.map(run));
    expect(mounted).toMatch(/^200$/m);
    expect(retried).toContain(`{ attempts: 3, end: 'attempts_exhausted' }`);
    expect(delays).toMatch(/^1000\n2000\n4000\n8000$/m);
    expect(simulated).toMatch(/met: true/);
  });

  test('loads and bundles no Fastify of its own', () => {
    const loaded = `import { registerHooks } from 'node:module';
const seen = [];
registerHooks({ resolve(specifier, context, next) { const found = next(specifier, context); seen.push(found.url); return found; } });
await import('tidegate'); await import('tidegate/policy');
const code = await import('node:fs').then(({ readFileSync }) => seen.filter((url) => url.startsWith('file:')).map((url) => readFileSync(new URL(url), 'utf8')).join(''));
console.log(JSON.stringify({ ours: seen.filter((url) => url.includes('/fastify/')).length, bundled: code.includes('FST_ERR_CTP_INVALID_MEDIA_TYPE') }));`;
    const { stdout, stderr } = installed.run(process.execPath, ['--input-type=module', '--eval', loaded]);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({ ours: 0, bundled: false });
  });
});
