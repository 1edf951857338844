// Prints the queries of the Grafana dashboards as recording rules, for `promtool check rules`. Argument: the folder of
// the dashboards.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const dashboard = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).default([]) })),
});

const [folder] = process.argv.slice(2);
assert.ok(folder, 'usage: dashboards.ts FOLDER');
const queries = readdirSync(folder).flatMap((name) => {
  const { panels } = dashboard.parse(JSON.parse(readFileSync(join(folder, name), 'utf8')));
  return panels.flatMap((panel) => panel.targets.map((target) => target.expr));
});
assert.ok(queries.length > 0, `no queries in ${folder}`);

const rules = queries.map((query, at) => ({
  record: `query:${at}`,
  // Values like those that Grafana substitutes for its variables.
  expr: query.replaceAll('$__rate_interval', '1m').replaceAll(/\$\w+/g, '.*'),
}));
console.log(JSON.stringify({ groups: [{ name: 'dashboards', rules }] }));
