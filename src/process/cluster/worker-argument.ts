/** The command-line argument of workers, by which `ps` shows them. */
export const WORKER_ARGUMENT = 'worker';
