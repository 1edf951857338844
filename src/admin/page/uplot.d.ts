// Served from the uplot package in a checkout, and from beside the page in dist/ (src/admin/serve-page.ts).
export { default } from 'uplot';
