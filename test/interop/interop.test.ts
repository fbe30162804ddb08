/** gRPC's interoperability cases over every fabric of this machine; test/rdma/interop.test.ts has those of RDMA devices. */
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Fabric } from 'rdma-rpc';
import { afterAll } from 'vitest';
import { openInProcess, openProcesses } from './peer.ts';
import { interopSuite } from './suite.ts';

const over = (fabric: Fabric): { fabric: Fabric } => ({ fabric });
const socket = join(tmpdir(), `rdma-rpc-interop-${process.pid}.sock`);
afterAll(() => rmSync(socket, { force: true }));

interopSuite('in one process', 'sim', openInProcess);
interopSuite('two processes, shared memory, handshake over TCP', 'shm', () => openProcesses());
interopSuite('two processes, shared memory, handshake over a unix socket', 'shm', () =>
  openProcesses(`unix:${socket}`),
);
interopSuite('two processes, TCP', 'tcp', () => openProcesses(undefined, over('tcp'), over('tcp')));
