// Comes first in what can be imported of the package: scripts/build.ts.
import { refusal } from './needed-node.js';

if (refusal !== undefined) throw new Error(refusal);
