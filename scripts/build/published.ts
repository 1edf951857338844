/** Fields of package.json that are published. All others concern development only. */
const KEPT = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'homepage',
  'bugs',
  'repository',
  'type',
  'bin',
  'exports',
  'files',
  'publishConfig',
  'engines',
] as const;

/** Only programs that mount the proxy in Fastify need it, and they have it installed. */
const HOST = { peerDependencies: { fastify: '^5.0.0' }, peerDependenciesMeta: { fastify: { optional: true } } };

/**
 * Returns the published manifest, without scripts, and without dependencies because they are bundled.
 * @throws if a published field is missing
 */
export function published(manifest: unknown): Record<string, unknown> {
  if (!(manifest instanceof Object)) throw new TypeError('package.json holds no object');
  const kept = KEPT.map((key): [string, unknown] => {
    const value: unknown = Reflect.get(manifest, key);
    if (value === undefined) throw new Error(`package.json has no ${key}`);
    return [key, value];
  });
  return { ...Object.fromEntries<unknown>(kept), ...HOST };
}
