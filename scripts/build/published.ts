/** What the manifest of the checkout says that holds for the package as well. All else is for those who work on it. */
const KEPT = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'type',
  'bin',
  'exports',
  'files',
  'engines',
] as const;

/** Whoever mounts the proxy has a Fastify already; all others need none. */
const HOST = { peerDependencies: { fastify: '^5.0.0' }, peerDependenciesMeta: { fastify: { optional: true } } };

/**
 * The manifest of the package: the bundle has its dependencies within, and brings no Node of its own. The checkout's is
 * `private`, so that nothing but a package that was made and tried is ever published; this one is not.
 * @throws where one of them is missing
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
