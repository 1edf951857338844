// Checks that no write is charged twice, and that no client gets a wrong report of its write, while processes and stores
// fail: real processes and sockets, an upstream with a ledger, and faults drawn by a seed. Exits with 1 if a promise of
// docs/idempotency.md is broken.
//
//   npm run check:writes -- --intents 20000 --topology replicas-redis

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { checkTopology } from './check-topology.ts';
import { type CheckerOptions, parseOptions, type TopologyName, USAGE } from './options.ts';

const SHOWN = 12;

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else {
    // A few faults leave the processors idle for most of the time.
    const isSplit = options.isSmoke && options.topologies.length > 1;
    const hasPassed = isSplit ? await checkAtOnce(options) : await checkInTurn(options);
    console.log(hasPassed ? '\nPASSED' : '\nFAILED');
    process.exit(hasPassed ? 0 : 1);
  }
} catch (error) {
  console.error(`check:writes: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  process.exit(1);
}

async function checkInTurn(options: CheckerOptions): Promise<boolean> {
  console.log(`seed ${options.seed}, ${options.clients} clients; Node ${process.version}`);
  let violations = 0;
  for (const name of options.topologies) {
    const result = await checkTopology(name, options);
    console.log(`\n${name}: ${result.lines.join('\n  ')}`);
    for (const each of result.violations.slice(0, SHOWN)) console.error(`  VIOLATION ${each}`);
    if (result.violations.length > SHOWN) console.error(`  VIOLATION … and ${result.violations.length - SHOWN} more`);
    violations += result.violations.length;
  }
  return violations === 0;
}

/** Each topology in a process of its own. */
async function checkAtOnce({ topologies, seed, clients, intents }: CheckerOptions): Promise<boolean> {
  const check = async (name: TopologyName): Promise<boolean> => {
    const args = ['--smoke', '--topology', name, ...toArgs({ seed, clients, intents })];
    const child = spawn(process.execPath, [import.meta.filename, ...args], { stdio: 'inherit' });
    process.once('exit', () => child.kill());
    const [code] = (await once(child, 'exit')) as [number | null];
    return code === 0;
  };
  return (await Promise.all(topologies.map(check))).every(Boolean);
}

function toArgs(options: Readonly<Record<string, number>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
}
