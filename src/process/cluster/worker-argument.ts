/** What a primary starts its workers with: `ps` shows which they are. */
export const WORKER = 'worker';
