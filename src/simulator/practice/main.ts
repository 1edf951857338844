// A practice upstream as a process, for the compose file and for trying things by hand:
//
//   node src/simulator/practice/main.ts --listen 127.0.0.1:8081 --spec docker/practice/payments.yaml

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { z } from 'zod';
import { completeAddress, parseListenAddress } from '../../config/values/listen-address.ts';
import { practicePatch } from './practice-spec.ts';
import type { PracticeOptions } from './practice-server.ts';
import { startPracticeServer } from './practice-server.ts';

const USAGE = `usage: npm run practice -- [--listen ADDRESS] [--spec FILE]

  --listen ADDRESS   host:port, or a port of 127.0.0.1; default: 127.0.0.1:8081
  --spec FILE        limit, latency, hints and faults, such as docker/practice/payments.yaml;
                     default: a token bucket of 20/s with a burst of 10

Runs a practice upstream until Ctrl-C.`;

try {
  const { help = false, ...values } = readArguments();
  if (help) console.log(USAGE);
  else await runPractice(readOptions(values));
} catch (error) {
  console.error(`practice: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function runPractice(options: PracticeOptions): Promise<void> {
  const practice = await startPracticeServer(options);
  console.log(`practice upstream on ${practice.url}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void practice.close());
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        listen: { type: 'string', default: '127.0.0.1:8081' },
        spec: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
    return values;
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`, { cause: error });
  }
}

function readOptions(values: { readonly listen: string; readonly spec?: string | undefined }): PracticeOptions {
  const address = parseListenAddress(completeAddress(values.listen));
  if (!address.ok || address.value.kind !== 'tcp') throw new Error(`--listen ${values.listen}: expected host:port`);
  const { host, port } = address.value;
  return { limit: { kind: 'token-bucket', rate: 20, burst: 10 }, ...readSpec(values.spec), host, port };
}

function readSpec(file: string | undefined): Partial<PracticeOptions> {
  if (file === undefined) return {};
  const spec = practicePatch.safeParse(parse(readFileSync(file, 'utf8')));
  if (!spec.success) throw new Error(`${file}: ${z.prettifyError(spec.error)}`);
  return spec.data;
}
