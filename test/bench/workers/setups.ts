import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILT } from '../build.ts';
import { nginxFrame } from '../nginx-frame.ts';
import { tidegateConfig } from '../overhead/configs.ts';
import type { Certificates } from '../../support/certificates.ts';
import { Program } from '../program.ts';
import type { Bandwidth } from './bandwidth.ts';
import type { BenchProcesses } from './bench-processes.ts';
import type { WorkersWorkload } from './workloads.ts';

const BODY = 1024;

/** A measured setup. */
export interface Setup {
  readonly name: string;
  readonly programs: readonly Program[];
  /** Each client thread uses one of them. */
  readonly urls: readonly string[];
}

/** The upstream's addresses and CA. */
export interface Listeners {
  readonly plain: number;
  readonly secure: number;
  readonly certificates: Certificates;
}

export function originConfig({ plain, secure, certificates }: Listeners, folder: string): string {
  return nginxFrame(
    folder,
    'off',
    `  server {
    listen 127.0.0.1:${plain};
    listen 127.0.0.1:${secure} ssl;
    ssl_certificate ${certificates.path('origin.crt')};
    ssl_certificate_key ${certificates.path('origin.key')};
    location / { return 200 "${'x'.repeat(BODY)}"; }
  }
`,
  );
}

/**
 * Starts one worker, two workers, and two proxies with one worker each, which show the maximum if sharing a limit were free.
 * @param share processors for each worker, including the primary's use. Undefined: no limit
 */
export async function startSetups(
  listeners: Listeners,
  { name: workload, secure }: WorkersWorkload,
  share: number | undefined,
  stage: BenchProcesses,
): Promise<readonly Setup[]> {
  const shared = secure
    ? tidegateConfig(`https://127.0.0.1:${listeners.secure}`, listeners.certificates.path('ca.crt'))
    : tidegateConfig(`http://127.0.0.1:${listeners.plain}`);
  const serve = async (role: string, workers: number): Promise<{ readonly program: Program; readonly url: string }> => {
    const name = `${workload}-${role}-${share ?? 'free'}`;
    const group = share === undefined ? undefined : stage.group(name, share * workers);
    const program = stage.start(tidegate(name, workers, shared, stage.folder, group));
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

function tidegate(
  name: string,
  workers: number,
  shared: string,
  folder: string,
  group: Bandwidth | undefined,
): Program {
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, `${shared}workers: ${workers}\ndrain: {delay: 0, timeout: 1s}\n`);
  const own = { command: process.execPath, args: [BUILT, 'serve', '--config', file] };
  return new Program({
    ...(group?.hold(own) ?? own),
    stopSignal: 'SIGTERM',
    output: join(folder, `${name}.log`),
  });
}
