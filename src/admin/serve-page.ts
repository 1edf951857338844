import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { installed } from '../installation.ts';
import { listElements } from '../core/http-semantics/list-field.ts';

/**
 * Nothing from elsewhere, nothing inline, no text that becomes markup or code, and in nobody's frame: what strangers call
 * themselves is shown here, to people who may do much.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  // Kept, and asked about each time: another version of Tidegate may have come.
  'cache-control': 'no-cache',
};

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** All there is: what a path names is looked up, never put together. */
const MODULES = [
  ...['admin-client', 'announcements', 'client-dialog', 'clients-table', 'confirm-dialog', 'connection-banner'],
  ...['definition-list', 'dom', 'explanation-dialog', 'keyed-rows', 'labels', 'main', 'operator-actions'],
  ...['page-model', 'process-panel', 'rate-chart', 'requests-table', 'sse-client', 'sse-parser', 'status-changes'],
  ...['theme', 'theme-switch', 'timeline-list', 'token-dialog', 'uplot', 'upstream-cards'],
];
const FILES: ReadonlyMap<string, string> = new Map([
  ['/', 'index.html'],
  ...['page.css', 'uplot.css', 'icon.svg', ...MODULES.map((name) => `${name}.js`)].map((file): [string, string] => [
    `/page/${file}`,
    file,
  ]),
]);

/** Whether a path is part of the page, which tells nothing but what the program is: it asks for the token by itself. */
export function isPage(path: string): boolean {
  return FILES.has(path);
}

interface Asset {
  readonly body: Buffer;
  readonly type: string;
  readonly tag: string;
}

/** GET / and what it needs beneath /page. Files are read when they are first asked for. */
export function servePage(app: FastifyInstance): void {
  for (const [path, file] of FILES) {
    let asset: Promise<Asset> | undefined;
    app.get(path, async (request, reply) => {
      asset ??= read(file);
      return answer(request, reply, await asset);
    });
  }
}

function answer(request: FastifyRequest, reply: FastifyReply, { body, type, tag }: Asset): FastifyReply {
  reply.headers({ ...HEADERS, etag: tag });
  const known = listElements(request.headers['if-none-match']).some((each) => each.replace(/^W\//, '') === tag);
  return known ? reply.code(304).send() : reply.type(type).send(body);
}

async function read(file: string): Promise<Asset> {
  const body = await readAsset(file);
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, type: TYPES[file.slice(file.lastIndexOf('.') + 1)] ?? 'application/octet-stream', tag };
}

/** What is not ours lies beside the rest when bundled, and elsewhere before. */
const FOREIGN: Readonly<Record<string, string>> = { 'uplot.js': 'uPlot.esm.js', 'uplot.css': 'uPlot.min.css' };

function readAsset(file: string): Promise<Buffer> {
  const beside = readFile(new URL(`./page/${file}`, import.meta.url));
  const foreign = FOREIGN[file];
  return foreign === undefined ? beside : beside.catch(() => readFile(installed(`node_modules/uplot/dist/${foreign}`)));
}
