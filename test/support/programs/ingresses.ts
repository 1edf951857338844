/** Starts real nginx and Caddy with the documented configuration, with free ports in place of its addresses. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nginxFrame } from '../../bench/nginx-frame.ts';
import { findProgram } from '../../setup/find-program.ts';
import { atEnd } from '../at-end.ts';
import { freeUrl } from '../upstreams/http-upstream.ts';
import { send } from '../clients/send.ts';
import { eventually } from '../proxy/tidegate.ts';

const ROOT = join(import.meta.dirname, '../../..');
const START = 20_000;

export interface IngressAddresses {
  /** Replaces `http://127.0.0.1:8080`, Tidegate's address in the document. */
  readonly tidegate: string;
  /** Replaces `http://127.0.0.1:3000`, the application's address in the document. */
  readonly app: string;
}

/** Reads a shipped configuration file. */
export function readShippedConfig(file: string): string {
  return readFileSync(join(ROOT, 'config/ingress', file), 'utf8');
}

/** Starts nginx. It is killed when the test ends. @returns its URL */
export async function startNginx(behind: IngressAddresses, conf = readShippedConfig('nginx.conf')): Promise<string> {
  const url = await freeUrl();
  const folder = makeFolder('nginx');
  const http = place(conf, behind).replaceAll('listen 80;', `listen ${new URL(url).host};`);
  writeFileSync(join(folder, 'nginx.conf'), nginxFrame(folder, 'off', http));
  await run('nginx', ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')], folder, url);
  return url;
}

/** Like `startNginx`. */
export async function startCaddy(behind: IngressAddresses, conf = readShippedConfig('Caddyfile')): Promise<string> {
  const url = await freeUrl();
  const folder = makeFolder('caddy');
  // Serves any host, as in the document.
  const site = place(conf, behind).replace(/^:80 \{/m, `http://:${new URL(url).port} {\n\tbind 127.0.0.1`);
  writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n\tauto_https off\n}\n${site}`);
  await run('caddy', ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')], folder, url);
  return url;
}

function place(conf: string, { tidegate, app }: IngressAddresses): string {
  return conf.replaceAll('127.0.0.1:8080', new URL(tidegate).host).replaceAll('127.0.0.1:3000', new URL(app).host);
}

function makeFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `tidegate-${name}-`));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function run(name: string, args: readonly string[], folder: string, url: string): Promise<void> {
  const program = findProgram(name);
  if (program === undefined) throw new Error(`${name} is not installed: node test/setup/programs.ts tests`);
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  atEnd(
    () =>
      new Promise<void>((resolve) => {
        if (child.exitCode !== null) return resolve();
        child.on('exit', () => resolve());
        child.kill('SIGTERM'); // nginx also stops its worker
      }),
  );
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`${name} ended: ${complaint}`);
      return (await send(url, '/').catch(() => undefined))?.status;
    },
    (status) => status !== undefined,
    START,
  );
}
