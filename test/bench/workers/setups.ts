import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILT } from '../build.ts';
import { nginxFrame } from '../nginx-frame.ts';
import { tidegateConfig } from '../overhead/configs.ts';
import { Program } from '../program.ts';

const BODY = 1024;

/** What is asked. */
export interface Setup {
  readonly name: string;
  readonly programs: readonly Program[];
  /** A thread of clients keeps to one of them. */
  readonly urls: readonly string[];
}

export function originConfig(port: number, folder: string): string {
  return nginxFrame(
    folder,
    'off',
    `  server {
    listen 127.0.0.1:${port};
    location / { return 200 "${'x'.repeat(BODY)}"; }
  }
`,
  );
}

/**
 * One worker, two, and two proxies of one worker each: what these do is what there is for two workers to do, if to share a limit
 * cost nothing.
 * @param start of a program; it is up to who calls to stop it
 */
export async function startSetups(
  origin: string,
  folder: string,
  start: (program: Program) => Program,
): Promise<readonly Setup[]> {
  const serve = async (name: string, workers: number): Promise<{ readonly program: Program; readonly url: string }> => {
    const program = start(tidegate(name, workers, origin, folder));
    return { program, url: await program.printed(/"url":"(http:[^"]+)".*"msg":"listening"/) };
  };
  const one = await serve('one', 1);
  const two = await serve('two', 2);
  const apart = [await serve('left', 1), await serve('right', 1)];
  return [
    { name: '1 worker', programs: [one.program], urls: [one.url] },
    { name: '2 workers', programs: [two.program], urls: [two.url] },
    {
      name: '2 proxies that share nothing',
      programs: apart.map(({ program }) => program),
      urls: apart.map(({ url }) => url),
    },
  ];
}

function tidegate(name: string, workers: number, origin: string, folder: string): Program {
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, `${tidegateConfig(origin)}workers: ${workers}\ndrain: {delay: 0, timeout: 1s}\n`);
  return new Program({
    command: process.execPath,
    args: [BUILT, 'serve', '--config', file],
    stopSignal: 'SIGTERM',
    output: join(folder, `${name}.log`),
  });
}
