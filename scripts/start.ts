// `npm start`: the practice config, unless something else is asked for.
const { argv, env } = process;
if (argv.length === 2 && !env.TIDEGATE_CONFIG && !env.TIDEGATE_UPSTREAM) argv.push('--config', 'config/practice.yaml');
await import('../src/main.ts');
