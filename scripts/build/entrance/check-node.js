// The first import of every library entry point; see scripts/build.ts.
import { refusal } from './needed-node.js';

if (refusal !== undefined) throw new Error(refusal);
