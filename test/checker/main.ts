// Checks that no write is charged twice, and that no client gets a wrong report of its write, while processes and stores
// fail: real processes and sockets, an upstream with a ledger, and faults drawn by a seed. Exits with 1 if a promise of
// docs/idempotency.md is broken.
//
//   npm run check:writes -- --intents 20000 --topology replicas-redis

import { checkTopology } from './check-topology.ts';
import { parseOptions, USAGE } from './options.ts';

const SHOWN = 12;

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else {
    console.log(`seed ${options.seed}, ${options.clients} clients; Node ${process.version}`);
    let violations = 0;
    for (const name of options.topologies) {
      const result = await checkTopology(name, options);
      console.log(`\n${name}: ${result.lines.join('\n  ')}`);
      for (const each of result.violations.slice(0, SHOWN)) console.error(`  VIOLATION ${each}`);
      if (result.violations.length > SHOWN) console.error(`  VIOLATION … and ${result.violations.length - SHOWN} more`);
      violations += result.violations.length;
    }
    console.log(violations === 0 ? '\nPASSED' : '\nFAILED');
    process.exit(violations === 0 ? 0 : 1);
  }
} catch (error) {
  console.error(`check:writes: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  process.exit(1);
}
