// Served from where the package lies, or from beside this file in dist/: src/admin/serve-page.ts.
export { default } from 'uplot';
