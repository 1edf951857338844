// A proxy with Netflix's Gradient2 limit, as bench:control has it. It prints its address.
//
//   node gradient2-proxy.ts UPSTREAM

import { Gradient2Limit } from '../../control/baselines/gradient2.ts';
import { createLimitedProxy } from './limited-proxy.ts';

const server = createLimitedProxy(process.argv[2] ?? '', new Gradient2Limit());
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) console.log(`listening on http://127.0.0.1:${address.port}`);
});
