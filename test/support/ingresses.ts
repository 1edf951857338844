/** Real nginx and Caddy, configured as the documents say, with their addresses exchanged for free ones. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { nginxFrame } from '../bench/nginx-frame.ts';
import { findProgram } from '../setup/find-program.ts';
import { freeUrl } from './http-upstream.ts';
import { send } from './send.ts';
import { eventually } from './tidegate.ts';

const ROOT = join(import.meta.dirname, '../..');
const START = 20_000;

export interface Behind {
  /** `http://127.0.0.1:8080` of the document: where Tidegate is. */
  readonly tidegate: string;
  /** `http://127.0.0.1:3000` of the document: where requests go. */
  readonly app: string;
}

/** Where a document stands, as it is shipped. */
export function shipped(file: string): string {
  return readFileSync(join(ROOT, 'config/ingress', file), 'utf8');
}

/** @returns where it listens. Killed when the test ends */
export async function startNginx(behind: Behind, conf = shipped('nginx.conf')): Promise<string> {
  const url = await freeUrl();
  const folder = makeFolder('nginx');
  const http = place(conf, behind).replaceAll('listen 80;', `listen ${new URL(url).host};`);
  writeFileSync(join(folder, 'nginx.conf'), nginxFrame(folder, 'off', http));
  await run('nginx', ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')], folder, url);
  return url;
}

/** As `startNginx`. */
export async function startCaddy(behind: Behind, conf = shipped('Caddyfile')): Promise<string> {
  const url = await freeUrl();
  const folder = makeFolder('caddy');
  // Of any host, as the document has it.
  const site = place(conf, behind).replace(/^:80 \{/m, `http://:${new URL(url).port} {\n\tbind 127.0.0.1`);
  writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n\tauto_https off\n}\n${site}`);
  await run('caddy', ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')], folder, url);
  return url;
}

function place(conf: string, { tidegate, app }: Behind): string {
  return conf.replaceAll('127.0.0.1:8080', new URL(tidegate).host).replaceAll('127.0.0.1:3000', new URL(app).host);
}

function makeFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `tidegate-${name}-`));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
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
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        if (child.exitCode !== null) return resolve();
        child.on('exit', () => resolve());
        child.kill('SIGTERM'); // nginx takes its worker with it
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
