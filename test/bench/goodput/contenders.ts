import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../../setup/find-program.ts';
import type { HaproxyQueue } from './configs.ts';
import { haproxyConfig, nginxConfig, tidegateConfig } from './configs.ts';
import { Program } from '../program.ts';
import { freePort } from '../../support/free-port.ts';

export const CONTENDERS = ['tidegate', 'nginx', 'haproxy', 'bare'] as const;

/** The proxy between clients and upstream; `bare` means none. */
export type GoodputContenderName = (typeof CONTENDERS)[number];

export interface RunningProxy {
  readonly url: string;
  stop(): Promise<void>;
}

/** Returns its version; undefined if it is not installed. */
export function versionOf(name: GoodputContenderName): string | undefined {
  switch (name) {
    case 'tidegate':
      return `Node ${process.version}`;
    case 'nginx':
      return versionPrinted('nginx', /nginx\/([\d.]+)/);
    case 'haproxy':
      return haproxyVersion();
    case 'bare':
      return 'no proxy';
  }
}

/**
 * Starts one without learned state in front of an upstream.
 * @param folder for its files
 * @param workers of Tidegate
 */
export async function startContender(
  name: GoodputContenderName,
  upstream: string,
  folder: string,
  workers: number,
): Promise<RunningProxy> {
  switch (name) {
    case 'tidegate':
      return startTidegate(folder, tidegateConfig(upstream, workers));
    case 'nginx': {
      const port = await freePort();
      const file = writeConfig(folder, 'nginx.conf', nginxConfig(port, hostOf(upstream), folder));
      return startPeer('nginx', ['-p', folder, '-c', file, '-e', 'stderr'], port);
    }
    case 'haproxy':
      return startHaproxy(upstream, folder);
    case 'bare':
      return { url: upstream, stop: () => Promise.resolve() };
  }
}

/** @param config as YAML */
export async function startTidegate(folder: string, config: string): Promise<RunningProxy> {
  const file = writeConfig(folder, 'tidegate.yaml', config);
  // On SIGTERM it would drain, with a delay for load balancers.
  return startNode(['src/main.ts', 'serve', '--config', file], /"url":"(http:[^"]+)".*"msg":"listening"/);
}

/** @param listening finds the address in what it prints */
export async function startNode(args: readonly string[], listening: RegExp): Promise<RunningProxy> {
  const program = new Program({ command: process.execPath, args, stopSignal: 'SIGKILL' });
  const url = await program.printed(listening);
  return { url, stop: () => program.stop() };
}

export async function startHaproxy(upstream: string, folder: string, queue?: HaproxyQueue): Promise<RunningProxy> {
  const port = await freePort();
  const text = (statuses: '429 503' | '503'): string => haproxyConfig(port, hostOf(upstream), statuses, queue);
  const file = writeConfig(folder, 'haproxy.cfg', text('429 503'));
  if (!takesConfig(file)) writeConfig(folder, 'haproxy.cfg', text('503'));
  return startPeer('haproxy', ['-db', '-f', file], port);
}

export async function startPeer(name: string, args: readonly string[], port: number): Promise<RunningProxy> {
  const program = new Program({ command: findProgram(name) ?? name, args, stopSignal: 'SIGTERM' });
  await program.listening(port);
  return { url: `http://127.0.0.1:${port}`, stop: () => program.stop() };
}

/** Undefined if it is not installed. @param flag that makes it print its version */
export function versionPrinted(name: string, pattern: RegExp, flag = '-v'): string | undefined {
  const program = findProgram(name);
  if (program === undefined) return undefined;
  const { stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8' });
  return pattern.exec(stdout + stderr)?.[1];
}

/** Returns its version, including whether it can retry on the compared statuses. */
function haproxyVersion(): string | undefined {
  const version = versionPrinted('haproxy', /version ([\d.]+)/);
  if (version === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-goodput-'));
  try {
    const file = writeConfig(folder, 'haproxy.cfg', haproxyConfig(1, '127.0.0.1:1', '429 503'));
    return takesConfig(file) ? version : `${version}, which cannot retry a 429`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function takesConfig(file: string): boolean {
  return spawnSync(findProgram('haproxy') ?? 'haproxy', ['-c', '-q', '-f', file]).status === 0;
}

export function hostOf(url: string): string {
  return new URL(url).host;
}

export function writeConfig(folder: string, name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}
