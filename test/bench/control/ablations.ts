import type { Controller } from './controllers.ts';

export const ABLATIONS: readonly Controller[] = [];
