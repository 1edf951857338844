import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from '../../setup/find-program.ts';
import { BUILT, ensureBuilt } from '../build.ts';
import { caddyConfig } from '../caddy-config.ts';
import { Program } from '../program.ts';
import { freePort } from '../../support/free-port.ts';
import { haproxyConfig, nginxConfig, tidegateConfig } from './configs.ts';

export const CONTENDERS = [
  'tidegate',
  'before',
  'floor',
  'http-proxy',
  'http-proxy-middleware',
  'nginx',
  'haproxy',
  'caddy',
] as const;

export type OverheadContenderName = (typeof CONTENDERS)[number];

export interface RunningContender {
  readonly url: string;
  readonly pid: number | undefined;
  stop(): Promise<void>;
}

/** Returns its version for the table; undefined if it is not installed. @param before the folder of another Tidegate build */
export function versionOf(name: OverheadContenderName, before: string | undefined): string | undefined {
  switch (name) {
    case 'before':
      return before === undefined ? undefined : 'another build of Tidegate, as it is';
    case 'tidegate':
      return `all defaults, its log to a file; Node ${process.version}`;
    case 'floor':
      return 'node:http and undici, and nothing between';
    case 'http-proxy':
      return '@fastify/http-proxy';
    case 'http-proxy-middleware':
      return 'over node:http, keep-alive agent';
    case 'nginx':
      return printed('nginx', ['-v'], /nginx\/([\d.]+)/);
    case 'haproxy':
      return printed('haproxy', ['-v'], /version ([\d.]+)/);
    case 'caddy':
      return printed('caddy', ['version'], /v?(\d[\d.]+)/);
  }
}

export interface Setting {
  readonly upstream: string;
  /** Folder for its files. */
  readonly folder: string;
  /** Like that of `versionOf`. */
  readonly before: string | undefined;
}

/** Starts one on its own processor, if there are several. */
export async function startContender(
  name: OverheadContenderName,
  { upstream, folder, before = '.' }: Setting,
): Promise<RunningContender> {
  switch (name) {
    case 'before':
      return startTidegate(folder, tidegateConfig(upstream), [join(before, 'dist/main.js')]);
    case 'tidegate':
      return startTidegate(folder, tidegateConfig(upstream));
    case 'floor':
    case 'http-proxy':
    case 'http-proxy-middleware':
      return startNode([programOf(name), upstream], /listening on (http:\S+)/);
    case 'nginx': {
      const port = await freePort();
      const file = write(folder, 'nginx.conf', nginxConfig(port, new URL(upstream).host, folder));
      return startPeer('nginx', ['-p', folder, '-c', file, '-e', 'stderr'], port);
    }
    case 'haproxy': {
      const port = await freePort();
      const file = write(folder, 'haproxy.cfg', haproxyConfig(port, new URL(upstream).host));
      return startPeer('haproxy', ['-db', '-f', file], port);
    }
    case 'caddy': {
      const port = await freePort();
      const file = write(folder, 'caddy.json', caddyConfig(port, new URL(upstream).host));
      return startPeer('caddy', ['run', '--config', file], port);
    }
  }
}

/** @param config as YAML @param program with Node's arguments before it; the build by default */
export function startTidegate(folder: string, config: string, program?: readonly string[]): Promise<RunningContender> {
  if (program === undefined) ensureBuilt();
  const args = [...(program ?? [BUILT]), 'serve', '--config', write(folder, 'tidegate.yaml', config)];
  return startNode(args, /"url":"(http:[^"]+)".*"msg":"listening"/, join(folder, 'tidegate.log'));
}

/** The upstream and the clients share the other processor. */
export function pinned(processor: number, command: string, args: readonly string[]): [string, readonly string[]] {
  const taskset = availableParallelism() > 1 ? findProgram('taskset') : undefined;
  return taskset === undefined ? [command, args] : [taskset, ['-c', String(processor), command, ...args]];
}

export function programOf(name: string): string {
  return fileURLToPath(new URL(`programs/${name}.ts`, import.meta.url));
}

async function startNode(args: readonly string[], listening: RegExp, output?: string): Promise<RunningContender> {
  const [command, all] = pinned(1, process.execPath, args);
  const program = new Program({
    command,
    args: all,
    stopSignal: 'SIGKILL',
    ...(output === undefined ? {} : { output }),
  });
  const url = await program.printed(listening);
  return { url, pid: program.pid, stop: () => program.stop() };
}

async function startPeer(name: string, args: readonly string[], port: number): Promise<RunningContender> {
  const [command, all] = pinned(1, findProgram(name) ?? name, args);
  const program = new Program({ command, args: all, stopSignal: 'SIGTERM' });
  await program.listening(port);
  return { url: `http://127.0.0.1:${port}`, pid: program.pid, stop: () => program.stop() };
}

function printed(name: string, args: readonly string[], pattern: RegExp): string | undefined {
  const program = findProgram(name);
  if (program === undefined) return undefined;
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return pattern.exec(stdout + stderr)?.[1];
}

function write(folder: string, name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}
