// `npm start`: serves the practice config unless the arguments or variables name another config, an upstream or a command.
import { addPracticeConfig, describeRemovedOptions } from '../src/cli/npm-start.ts';

const { argv, env } = process;
const args = argv.slice(2);
const problem = describeRemovedOptions(args, env);
if (problem === undefined) {
  argv.splice(2, args.length, ...addPracticeConfig(args, env));
  await import('../src/main.ts');
} else {
  process.stderr.write(`tidegate: ${problem}\n`);
  process.exitCode = 2;
}
