// Enforces that tests in test/unit and test/property do not connect, listen or start processes.

import childProcess from 'node:child_process';
import dgram from 'node:dgram';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

function refuse(holder: object, ...names: readonly string[]): void {
  for (const name of names) {
    Reflect.set(holder, name, () => {
      throw new Error(`a unit test called ${name}: move it to test/integration`);
    });
  }
}

refuse(net.Server.prototype, 'listen');
refuse(net.Socket.prototype, 'connect');
refuse(dgram, 'createSocket');
refuse(childProcess, 'exec', 'execFile', 'execFileSync', 'execSync', 'fork', 'spawn', 'spawnSync');
syncBuiltinESMExports();
