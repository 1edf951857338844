import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../../setup/find-program.ts';
import { haproxyConfig, nginxConfig, tidegateConfig } from './configs.ts';
import { freePort, Program } from '../program.ts';

export const CONTENDERS = ['tidegate', 'nginx', 'haproxy', 'bare'] as const;

/** Who stands between the clients and the upstream; `bare` is nobody. */
export type ContenderName = (typeof CONTENDERS)[number];

export interface Standing {
  readonly url: string;
  stop(): Promise<void>;
}

/** What its version is; undefined when it is not installed. */
export function versionOf(name: ContenderName): string | undefined {
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
 * Starts one, knowing nothing yet, in front of an upstream.
 * @param folder for its files
 * @param workers of Tidegate
 */
export async function stand(name: ContenderName, upstream: string, folder: string, workers: number): Promise<Standing> {
  switch (name) {
    case 'tidegate':
      return startTidegate(upstream, folder, workers);
    case 'nginx': {
      const port = await freePort();
      const file = writeConfig(folder, 'nginx.conf', nginxConfig(port, hostOf(upstream), folder));
      return startPeer('nginx', ['-p', folder, '-c', file, '-e', 'stderr'], port);
    }
    case 'haproxy': {
      const port = await freePort();
      const file = writeConfig(folder, 'haproxy.cfg', haproxyConfig(port, hostOf(upstream), '429 503'));
      if (!takesConfig(file)) writeConfig(folder, 'haproxy.cfg', haproxyConfig(port, hostOf(upstream), '503'));
      return startPeer('haproxy', ['-db', '-f', file], port);
    }
    case 'bare':
      return { url: upstream, stop: () => Promise.resolve() };
  }
}

async function startTidegate(upstream: string, folder: string, workers: number): Promise<Standing> {
  const file = writeConfig(folder, 'tidegate.yaml', tidegateConfig(upstream, workers));
  const args = ['src/main.ts', 'serve', '--config', file];
  // It would drain on SIGTERM, and wait for its balancer first.
  const program = new Program({ command: process.execPath, args, stopSignal: 'SIGKILL' });
  const url = await program.printed(/"url":"(http:[^"]+)".*"msg":"listening"/);
  return { url, stop: () => program.stop() };
}

async function startPeer(name: string, args: readonly string[], port: number): Promise<Standing> {
  const program = new Program({ command: findProgram(name) ?? name, args, stopSignal: 'SIGTERM' });
  await program.listening(port);
  return { url: `http://127.0.0.1:${port}`, stop: () => program.stop() };
}

function versionPrinted(name: string, pattern: RegExp): string | undefined {
  const program = findProgram(name);
  if (program === undefined) return undefined;
  const { stdout, stderr } = spawnSync(program, ['-v'], { encoding: 'utf8' });
  return pattern.exec(stdout + stderr)?.[1];
}

/** Whether it can retry what it is to be compared at is part of what it is. */
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

function hostOf(url: string): string {
  return new URL(url).host;
}

function writeConfig(folder: string, name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}
