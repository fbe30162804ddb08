/**
 * Tests memory of leases that an application has sent to another thread. The memory can be read there after
 * the thread that leased it has ended in any way.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const program = fileURLToPath(new URL('../../dist/test/native/moved-memory.js', import.meta.url));
const canMove = 'transfer' in ArrayBuffer.prototype;

test.skipIf(!canMove).each(['terminate', 'exit', 'return', 'throw'])(
  'the other thread reads it after the worker has ended by %s',
  (end) => {
    const { status, signal, stdout } = spawnSync(process.execPath, [program, end], { encoding: 'utf8' });
    expect({ status, signal, stdout }).toEqual({
      status: 0,
      signal: null,
      stdout: 'renewed true, new true, used before true\n',
    });
  },
);
