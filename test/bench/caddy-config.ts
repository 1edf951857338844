/** Configuration of a Caddy that only forwards, as JSON. */
export function caddyConfig(port: number, upstream: string): string {
  return JSON.stringify({
    admin: { disabled: true, config: { persist: false } }, // avoids a file in the working directory
    logging: { logs: { default: { level: 'ERROR' } } },
    apps: {
      http: {
        servers: {
          bench: {
            listen: [`127.0.0.1:${port}`],
            automatic_https: { disable: true },
            routes: [{ handle: [{ handler: 'reverse_proxy', upstreams: [{ dial: upstream }] }] }],
          },
        },
      },
    },
  });
}
