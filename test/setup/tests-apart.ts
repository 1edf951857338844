// Gives each of several tests side by side its own clean-up.

import { aroundEach } from 'vitest';
import { runAs } from '../support/at-end.ts';

aroundEach((runTest, context) => runAs(context, runTest));
