/**
 * Runs gRPC's interoperability cases over every fabric of this machine. test/rdma/interop.test.ts has those
 * of RDMA devices.
 */
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Fabric } from 'rdma-rpc';
import { afterAll } from 'vitest';
import { everything } from '../extent.ts';
import { Authority } from '../security/certificates.ts';
import { openInProcess, openProcesses } from './peer.ts';
import { interopSuite } from './suite.ts';

const over = (fabric: Fabric): { fabric: Fabric } => ({ fabric });
const socket = join(tmpdir(), `rdma-rpc-interop-${process.pid}.sock`);
afterAll(() => {
  for (const path of [socket, `${socket}-sealed`]) rmSync(path, { force: true });
});

interopSuite('two processes, shared memory, handshake over a unix socket', 'shm', () =>
  openProcesses(`unix:${socket}`),
);
if (everything) {
  interopSuite('in one process', 'sim', () => openInProcess());
  interopSuite('two processes, shared memory, handshake over TCP', 'shm', () => openProcesses());
  interopSuite('two processes, TCP', 'tcp', () => openProcesses(undefined, over('tcp'), over('tcp')));
}

const security = { require: 'sealed' } as const;
const authority = new Authority();
const { cert, key } = authority.issue({ names: ['localhost'], addresses: ['127.0.0.1'] });
if (everything) {
  interopSuite('in one process, sealed', 'sim', () => openInProcess({ security }));
  interopSuite('two processes, shared memory, sealed', 'shm', () =>
    openProcesses(`unix:${socket}-sealed`, { security }, {}),
  );
}
interopSuite('two processes, TCP, sealed', 'tcp', () =>
  openProcesses(
    undefined,
    { ...over('tcp'), tls: { cert, key } },
    { ...over('tcp'), tls: { ca: authority.ca }, security },
  ),
);
