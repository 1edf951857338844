import fc from 'fast-check';

/**
 * The seed of every property that names none. A run must fail because of a change, not by chance; `npm run test:properties` searches
 * with other seeds.
 */
const SEED = Number(process.env['TIDEGATE_SEED'] ?? 1);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED });
