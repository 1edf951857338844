// `npm start`: serves the practice config unless arguments or variables say otherwise.
const { argv, env } = process;
if (argv.length === 2 && !env.TIDEGATE_CONFIG && !env.TIDEGATE_UPSTREAM) argv.push('--config', 'config/practice.yaml');
await import('../src/main.ts');
